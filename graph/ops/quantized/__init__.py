"""Shape functions and gradients of the ops on quantised numbers."""
