"""Training graphs made parallel, or smaller in memory: each pass returns a new graph that computes the same."""
