"""Shape functions and gradients of the ops on images: sizes, colours, boxes, projections."""
