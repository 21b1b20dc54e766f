"""The weights that one rank has: variables in the precision of the optimizer, values in that of the products.

    weight("query", (8, 8), split=1, scale=0.1)   over tp 4, precision bfloat16

    query/variable   VarHandleOp float [8,2]  {shared_name="query", _reduced_over="dp+cp"}
    query/read       ReadVariableOp           what gradients are taken of: they come in float32 and add up in it
    query/cast       Cast to bfloat16         once a step

Without masters, for inference, the variable has the type of the products itself, and no cast. It starts with what the
cast would give.

Initial numbers depend on the name and the whole shape alone. Every rank draws them all and keeps its part, so that each
split of a model starts from the same weights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from zlib import crc32

import numpy as np

from ....errors import InvalidArgumentError
from ....graph import DataType
from ....graph.builder.handles import Operation, Tensor
from ....graph.parallel.mesh.marks import REDUCED_OVER
from ....graph.parallel.mesh.rank_program import RankProgram

_REPLICAS: dict[str, tuple[str, ...]] = {"ep": ("edp",), "dp": ()}
"""by the axes that share a weight out, the parts of dp that have equal shares; "dp" for all others"""
_COMPUTED_IN = {
    "float64": DataType.DOUBLE,
    "float32": DataType.FLOAT,
    "bfloat16": DataType.BFLOAT16,
    "float16": DataType.HALF,
    "fp8": DataType.BFLOAT16,
}


@dataclass(frozen=True, slots=True)
class RankParameter:
    """A weight of a rank: its variable, the value that was read, and how it lies on the mesh."""

    name: str
    handle: Tensor
    read: Tensor
    part: tuple[int, ...]
    """the shape on the rank"""
    over: str
    """the axes over which it is shared out; empty if every rank has all of it"""
    axis: int | None
    """the axis of the whole weight that is shared out"""
    stage: int


class RankParameters:
    """Makes the weights of a rank program, on the stage for which nodes are made."""

    def __init__(self, program: RankProgram, precision: str, *, starts: bool = True, has_masters: bool = True) -> None:
        """Without `starts` nothing sets initial values: for graphs that are only timed.

        Without `has_masters` variables are kept in the type of the products, for networks that are not trained.
        """
        if precision not in _COMPUTED_IN:
            raise InvalidArgumentError(f"precision={precision!r} is not known; use one of {', '.join(_COMPUTED_IN)}")
        self.program = program
        self.compute_type = _COMPUTED_IN[precision]
        self.master_type = DataType.DOUBLE if precision == "float64" else DataType.FLOAT
        self.all: list[RankParameter] = []
        self.untrained: list[RankParameter] = []
        """weights that a step leaves as they are"""
        self.assignments: list[tuple[int, Operation]] = []
        """with the stage of each"""
        self._starts = starts
        self._cast: dict[str, Tensor] = {}
        """by the name of a value that is cast what was read"""
        self._has_masters = has_masters

    def weight(
        self,
        name: str,
        shape: Sequence[int],
        *,
        split: int | None = None,
        over: str = "tp",
        scale: float = 1.0,
        start: float | Callable[[], Tensor] | None = None,
        partial_over: Sequence[str] = (),
        filled: int | None = None,
        is_trained: bool = True,
        is_cast: bool = True,
    ) -> Tensor:
        """The value of a weight of the whole shape `shape`, of which axis `split` is shared out over mesh axes `over`.

        It starts uniform in [-scale, scale), everywhere with `start`, or with the rank's part of the whole value that
        `start` makes. `partial_over` are axes besides dp and cp over which the gradients of ranks are parts of a sum;
        those of shares over "dp" are whole. Of axis 0 only `filled` are in use, the others pad it and start at 0:
        initial numbers do not depend on how many these are. What is not trained is among `untrained`, not `all`.
        Without `is_cast` the value has the precision of the optimizer. Raises InvalidArgumentError for a size
        that does not divide.
        """
        b = self.program.b
        ranks = 1 if split is None else self.program.mesh.size(over)
        part = list(shape)
        if split is not None:
            if part[split] % ranks:
                raise InvalidArgumentError(f"weight {name!r}: {part[split]} cannot be shared out over {over}={ranks}")
            part[split] //= ranks
        replicas = _REPLICAS.get(over, ("dp",)) if split is not None else ("dp",)
        summed = "+".join((*partial_over, *replicas, "cp"))
        dtype = self.compute_type if is_cast and not self._has_masters else self.master_type
        with b.scope(name) as full:
            handle = b.op(
                "VarHandleOp",
                name="variable",
                dtype=dtype,
                shape=part,
                attrs={"shared_name": full, REDUCED_OVER: summed},
            )[0]
            if self._starts:
                value = self._start(full, shape, split if ranks > 1 else None, over, scale, start, filled)
                if dtype is not self.master_type:
                    value = b.op("Cast", value, DstT=dtype, name="start/cast")[0]
                self.assignments.append((self.program.stage, b.op("AssignVariableOp", handle, value, name="start")))
            read = b.op("ReadVariableOp", handle, name="read", dtype=dtype)[0]
            axes, axis = (over, split) if ranks > 1 else ("", None)
            parameter = RankParameter(full, handle, read, tuple(part), axes, axis, self.program.stage)
            (self.all if is_trained else self.untrained).append(parameter)
            if self.compute_type is dtype or not is_cast:
                return read
            value = b.op("Cast", read, DstT=self.compute_type, name="cast")[0]
            self._cast[value.name] = read
            return value

    def again(self, value: Tensor, name: str) -> Tensor:
        """A weight's value, cast once more for another stage.

        The gradients of both are added up in the precision of the optimizer, behind what each stage adds up of its own:
        a sum of narrow values would cross stages with every micro-batch.
        """
        read = self._cast.get(value.name)
        return value if read is None else self.program.b.op("Cast", read, DstT=self.compute_type, name=name)[0]

    def uniform(self, name: str, shape: Sequence[int], scale: float, *, drawn_as: str = "") -> Tensor:
        """An initial value, uniform in [-scale, scale) by name and shape; `drawn_as` is a whole name in its place."""
        with self.program.b.scope(name) as full:
            return self._scaled(self._drawn(drawn_as or full, shape), scale)

    def slot(self, parameter: RankParameter, name: str) -> Tensor:
        """A variable of zeros beside a weight, of its shape: the state of an optimizer."""
        return self.variable(f"{parameter.name}/{name}", parameter.part, 0.0)

    def variable(self, name: str, shape: Sequence[int], start: float) -> Tensor:
        """The handle of a variable of the rank's own, in the precision of weights."""
        b = self.program.b
        handle = b.op("VarHandleOp", name=name, dtype=self.master_type, shape=list(shape), attrs={"shared_name": name})[
            0
        ]
        if self._starts:
            value = b.op(
                "Fill", np.array(shape, np.int32), np.array(start, self.numpy_type), name=f"{name}/start/value"
            )
            self.assignments.append((self.program.stage, b.op("AssignVariableOp", handle, value, name=f"{name}/start")))
        return handle

    def state(self, name: str, shape: Sequence[int], dtype: DataType) -> Tensor:
        """The handle of a variable of zeros in the current scope, which is no weight: a cache, a count."""
        b = self.program.b
        with b.scope(name) as full:
            attrs = {"shared_name": full}
            handle = b.op("VarHandleOp", name="variable", dtype=dtype, shape=list(shape), attrs=attrs)[0]
            if self._starts:
                zero = b.constant(0, dtype, name="zero")
                value = b.op("Fill", np.array(shape, np.int32), zero, name="start/value")
                self.assignments.append((self.program.stage, b.op("AssignVariableOp", handle, value, name="start")))
        return handle

    @property
    def numpy_type(self) -> type[np.float64 | np.float32]:
        """The type of weights in numpy."""
        return np.float64 if self.master_type is DataType.DOUBLE else np.float32

    def _start(
        self,
        full: str,
        shape: Sequence[int],
        split: int | None,
        over: str,
        scale: float,
        start: float | Callable[[], Tensor] | None,
        filled: int | None,
    ) -> Tensor:
        """The rank's part of the initial value."""
        b = self.program.b
        if callable(start):
            return start() if split is None else self._part(start(), shape, split, over)
        if start is not None:
            part = list(shape)
            if split is not None:
                part[split] //= self.program.mesh.size(over)
            return b.op("Fill", part, np.array(start, self.numpy_type), name="start/value")[0]
        used = [filled or shape[0], *shape[1:]]
        drawn = self._drawn(full, used)
        if used[0] < shape[0]:  # by what becomes 0 when it is scaled
            padding = [[0, shape[0] - used[0]], *([0, 0] for _ in shape[1:])]
            drawn = b.op("PadV2", drawn, padding, np.array(0.5, self.numpy_type), name="start/padded")[0]
        if split is not None:
            drawn = self._part(drawn, shape, split, over)
        return self._scaled(drawn, scale)

    def _drawn(self, full: str, shape: Sequence[int]) -> Tensor:
        """Uniform in [0, 1), by name and shape."""
        seed = [crc32(full.encode()) & 0x7FFFFFFF, prod(shape)]
        b = self.program.b
        return b.op("StatelessRandomUniform", list(shape), seed, dtype=self.master_type, name="start/drawn")[0]

    def _scaled(self, drawn: Tensor, scale: float) -> Tensor:
        b = self.program.b
        doubled = b.op("Mul", drawn, np.array(2 * scale, self.numpy_type), name="start/scaled")
        return b.op("Sub", doubled, np.array(scale, self.numpy_type), name="start/value")[0]

    def _part(self, whole: Tensor, shape: Sequence[int], split: int, over: str) -> Tensor:
        """The rank's part of a tensor of that shape, cut along axis `split`."""
        b, program = self.program.b, self.program
        rows = np.zeros(len(shape), np.int32)
        rows[split] = shape[split] // program.mesh.size(over)
        begin = b.op("Mul", program.position(over), rows, name="start/begin")
        size = [n if axis != split else int(rows[split]) for axis, n in enumerate(shape)]
        return b.op("Slice", whole, begin, size, name="start/part")[0]
