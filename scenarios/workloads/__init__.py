"""Graph builders: what the stories run. Each takes sizes and devices, and gives a GraphDef."""
