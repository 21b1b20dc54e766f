"""GraphDef in and out: messages, files and text on one side, a Graph on the other."""
