"""Shape functions and gradients of the ops on sparse and ragged tensors, and sets of rows."""
