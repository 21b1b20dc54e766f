"""Shape functions and gradients of the ops on tensor arrays, tensor lists, stacks and optional values."""
