"""Shape functions and gradients of the ops that transformers are made of, and which keys a query sees."""
