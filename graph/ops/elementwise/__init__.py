"""Shape functions and gradients of the ops on functions of single elements, and conversions."""
