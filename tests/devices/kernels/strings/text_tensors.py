"""String tensors to try kernels on."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from partita.graph.dtypes import Array
from tests.devices.kernels.random_arrays import texts

vectors = st.lists(st.binary(max_size=6), max_size=5).map(lambda values: texts(*values))


def scalar(value: bytes) -> Array:
    """A string without axes."""
    return np.array(value, object)
