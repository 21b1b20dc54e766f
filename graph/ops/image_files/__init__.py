"""Shape functions of the ops on image files."""
