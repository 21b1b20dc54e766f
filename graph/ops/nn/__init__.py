"""Shape functions and gradients of the ops of neural networks, from convolutions to losses."""
