"""Kernels on numpy, one module a family; importing this package registers them all."""

from __future__ import annotations

from . import conv as conv
from . import matmul as matmul
from . import pool as pool
