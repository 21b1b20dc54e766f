"""Virtual time: op costs, the simulated cluster, and the timeline it produces."""

# Imported for what they register.
from . import costs_conv, costs_dense, costs_free, costs_nn

__all__ = ["costs_conv", "costs_dense", "costs_free", "costs_nn"]
