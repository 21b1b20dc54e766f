"""Shape function of isotonic regression: both outputs have the shape of the input."""

from __future__ import annotations

from ...analysis.shape_functions import shape_fn, unchanged

shape_fn("IsotonicRegression")(unchanged)
