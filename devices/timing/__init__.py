"""Virtual time: op costs, the simulated cluster, and the timeline it produces."""
