"""The library of functions that the nodes of a graph may call, and what a call is."""
