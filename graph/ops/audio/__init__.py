"""Shape functions of the ops on sound."""
