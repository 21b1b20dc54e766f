"""Facts about ops: signatures, records, shape functions, gradients, and memory types of their kernels."""
