"""Passes over a whole graph: each returns a graph that computes the same, mostly a new one.

Before placement `lower_functional` replaces conditionals, loops and calls by simpler nodes; after partitioning
`optimizer` makes the partitions cheaper to run.
"""
