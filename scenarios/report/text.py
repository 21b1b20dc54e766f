"""Texts for reports that are the same on every machine.

Floating-point numbers are cut to three digits, since the last bits of a sum depend on the machine's arithmetic
libraries.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ...devices.timing import BASIS
from ...graph.dtypes import Array, dtype_name, from_numpy

NOT_CALIBRATED = f"times are {BASIS}: they follow from models of devices and links, not from measured hardware"


def value_line(name: str, value: Array) -> str:
    """Name, type, shape, and smallest, largest and mean element of a numeric tensor, which must not be empty.

    Numbers below a ten-thousandth of the largest magnitude show as 0: they may be rounding errors of a sum that is 0.
    """
    numbers = value.astype(np.float64)
    least = 1e-4 * np.abs(numbers).max()
    low, high, mean = (
        f"{0.0 if abs(x) < least else float(x):.3g}" for x in (numbers.min(), numbers.max(), numbers.mean())
    )
    head = f"{name}: {dtype_name(from_numpy(value))} [{','.join(map(str, value.shape))}]"
    return f"{head} {low}" if value.ndim == 0 else f"{head} from {low} to {high}, mean {mean}"


def columns(rows: Sequence[Sequence[str]], *, left: int = 1) -> Iterator[str]:
    """Rows in aligned columns; the first row is the heading, the first `left` columns are texts, the rest numbers."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            text.ljust(width) if k < left else text.rjust(width)
            for k, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  " + "  ".join(cells).rstrip()
