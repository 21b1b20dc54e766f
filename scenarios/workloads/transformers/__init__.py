"""Transformers and recommenders as rank programs: a file a family, and the blocks that they share."""
