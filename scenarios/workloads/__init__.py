"""Builders of the graphs that the stories run: sizes and devices in, a GraphDef out."""
