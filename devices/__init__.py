"""Where and at what cost: devices, kernels, placement, timing."""
