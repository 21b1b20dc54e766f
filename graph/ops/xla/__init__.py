"""Shape functions and gradients of the ops that name one operation of XLA each."""
