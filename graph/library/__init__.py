"""The library of functions that the nodes of a graph may call, and which nodes are calls."""
