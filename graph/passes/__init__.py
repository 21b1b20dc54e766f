"""Passes over a whole graph: each takes one, leaves it alone, and gives another that computes the same."""
