"""What is known of single tensors before a run, each distinct fact numbered once.

A step of a million nodes has a few hundred distinct facts. Numbers let the walk of a graph look up what it has computed
before, without building and comparing shapes and arrays again:

    tensor                            shape    value     behind      number
    Placeholder, shape (None, 3)      (?, 3)                         1
    Const [2, 3], int32               (2,)     [2, 3]                2
    another Const [2, 3], int32       (2,)     [2, 3]                2
    VarHandleOp of shape (2, 3)       ()                 (2, 3)      3
"""

from __future__ import annotations

from ..dtypes import Array, Shape, Shapes

UNKNOWN = 0
"""the number of a tensor of which nothing is known"""


class TensorFacts:
    """Facts by number: the shape; the value if it is followed (see `value_rules.py`); the shapes behind a handle."""

    def __init__(self) -> None:
        self.shapes: list[Shape] = []
        self.values: list[Array | None] = []
        self.behind: list[Shapes | None] = []
        self._numbers: dict[tuple[Shape, tuple[str, Shape, bytes] | None, Shapes | None], int] = {}
        self.number(None)

    def number(self, shape: Shape, value: Array | None = None, behind: Shapes | None = None) -> int:
        """The number of a fact; equal facts have equal numbers."""
        code = None if value is None else (value.dtype.str, value.shape, value.tobytes())
        number = self._numbers.setdefault((shape, code, behind), len(self.shapes))
        if number == len(self.shapes):
            self.shapes.append(shape)
            self.values.append(value)
            self.behind.append(behind)
        return number
