"""Shape functions and gradients of the ops on variables and what a session keeps."""
