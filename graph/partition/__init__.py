"""Cutting a graph into one part per device, joined by Send and Recv nodes."""
