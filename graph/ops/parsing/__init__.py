"""Shape functions of the ops that parse serialised Examples."""
