"""Shape functions and gradients of the ops on reductions, scans, segments and counts."""
