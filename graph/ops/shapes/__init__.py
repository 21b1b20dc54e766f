"""Shape functions, one module a family, mirroring `devices/kernels`; `registry.py` has the table, `families.py` fills it."""
