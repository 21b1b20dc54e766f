"""Shape functions and gradients of the ops on files: checkpoints."""
