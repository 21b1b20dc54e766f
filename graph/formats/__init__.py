"""Checkpoints and SavedModels, read and written without TensorFlow."""
