"""What the ops are: signatures, shapes, and where their kernels keep their tensors."""
