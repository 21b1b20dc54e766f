"""Elementwise ops that may be computed into the buffer of an operand: numpy's functions take `out` themselves."""

from __future__ import annotations

import numpy as np

from ..in_place import in_place

in_place("Add", np.add)
in_place("AddV2", np.add)
in_place("Sub", np.subtract)
in_place("Mul", np.multiply)
in_place("RealDiv", np.true_divide)
in_place("Maximum", np.maximum)
in_place("Minimum", np.minimum)
in_place("Neg", np.negative)
in_place("Sqrt", np.sqrt)
in_place("Square", np.square)
in_place("Exp", np.exp)
