"""Passes that make the training step of one device parallel: replicas, pipelines, recomputation.

    training_step.py    what a training step consists of: forward, backward, updates, and the gradients between
    replicate.py        one replica per device, gradients reduced over all of them

Every replica gets a program of its own, a copy of the graph of one device. What it shares with the others goes through
collectives.
"""
