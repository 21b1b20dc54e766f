"""Shape functions and gradients of the ops on linear algebra, tensor contractions and Fourier transforms."""
