"""Passes over a whole graph: each takes one, leaves it alone, and gives another that computes the same.

Before placement `lower_functional` puts conditionals, loops and calls of functions into the graph that has them; after
partitioning `optimizer` makes the partitions cheaper to run.
"""
