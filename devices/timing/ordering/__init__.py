"""In which order ready kernels and complete collectives are taken, where the caller of a simulation chooses one."""
