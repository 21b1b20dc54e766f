"""Ops of TensorFlow's own tests."""
