"""Shape functions, one module a family as in `devices/kernels`; `registry.py` has the table, `families.py` fills it."""
