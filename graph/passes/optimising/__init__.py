"""The passes that make a partition cheaper to run, and the rounds in which they run."""
