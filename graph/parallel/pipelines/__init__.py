"""The parts of the pass that makes a pipeline of a training step; `pipeline.py` beside this folder joins them."""
