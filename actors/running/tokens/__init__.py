"""The token rules of graphs: frames and iterations of loops, and which nodes are ready."""
