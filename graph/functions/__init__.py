"""Function bodies: the graph that a function becomes for the attrs of one call, and the checks of calls at import."""
