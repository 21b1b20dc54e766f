"""An op, Smooth, and a kind of device, NPU, that Partita finds by entry points."""
