"""The compiler: a partition graph becomes a plan, which holds bound kernels but no step, part or actor."""
