"""Runs compiled plans: device actors, steps, loops, function calls, and the reference executor."""
