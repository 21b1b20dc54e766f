"""Kernels of the collective ops, whose nodes meet in a step whichever devices they are on."""
