"""Shape functions and gradients of the ops on arrays: cutting, joining, reshaping, picking and ranking."""
