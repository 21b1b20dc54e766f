"""Shape functions and gradients of the ops on control flow, constants, placeholders and calls."""
