"""Shape functions and gradients of the ops on optimisers."""
