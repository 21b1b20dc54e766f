"""Shape functions and gradients of the ops on numbers on a coarse grid."""
