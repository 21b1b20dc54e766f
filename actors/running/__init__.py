"""Plans at work: device actors, the steps they share, loops, calls of functions, and the reference executor."""
