"""Kernels of neural networks: convolutions, poolings, normalisations, activations, losses, recurrent cells."""
