"""The simulated hardware: flows over shared links, in numbers and on the clock."""
