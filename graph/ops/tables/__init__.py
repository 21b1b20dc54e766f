"""Shape functions and gradients of the ops on look-up tables."""
