"""Kernels of the ops on images: sizes, colours, boxes, projections."""
