"""Runs loops: by one device, by several together, and looks at the clock between iterations."""
