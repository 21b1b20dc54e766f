"""Functions that deferred kernels call by a service of their `Call`: calls, and random generators per scope."""
