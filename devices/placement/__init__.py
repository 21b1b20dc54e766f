"""Placement: gives every node of a graph one of the devices of a cluster, as TensorFlow's placer does."""
