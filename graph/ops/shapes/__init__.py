"""Shape functions, one module a family, mirroring `devices/kernels`; importing this package registers them all."""
