"""Sessions: what a user opens on a graph and a cluster, asks for values, and closes."""
