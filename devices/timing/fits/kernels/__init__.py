"""Models of kernels by family: a formula of a few numbers, times a surface of what it misses."""
