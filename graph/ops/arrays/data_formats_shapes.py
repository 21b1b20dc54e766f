"""Shape functions of layouts: what is mapped keeps its shape."""

from __future__ import annotations

from ...analysis.shape_functions import shape_fn, unchanged

shape_fn("DataFormatDimMap", "DataFormatVecPermute")(unchanged)
