"""The program of one rank: nodes that exchange tensors with the other ranks along axes of a mesh, and their gradients.

A model is built once, as the first rank of each stage runs it. What differs between ranks are a few constants, which
say for which ranks they are; the copies for other ranks get theirs:

    r = RankProgram(b, Mesh(tp=4))
    part = b.op("MatMul", x, rows_of_w)                      a rank has some rows of w, and as many columns of x
    y = r.all_reduce(part, "tp")

    mesh/tp/key   = Const() {value=7, _of_rank="key:tp"}                  on ranks 4 to 7 of two groups another number
    all_reduce    = CollectiveReduceV2(MatMul, size, key, microbatch) {_axis="tp", _mesh="...", _instance=1}

The sum that all ranks have is used by all of them for the same: each computes the whole gradient of it. So the gradient
of `all_reduce` is the gradient as it comes, and `copied`, in front of what ranks do differently, adds gradients up:
these are g and f of Megatron-LM (Shoeybi et al. 2019, section 3). `all_gather` and `reduce_scatter` are each other's
gradients (Korthikanti et al. 2022, section 4.2). Every collective of a program has an `_instance` of its own. Its
instance key is the number of the micro-batch, 0 until a pipeline calls it several times.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

from ...analysis.collective_seats import AXIS, INSTANCE, MESH
from ...builder.builder import GraphBuilder
from ...builder.handles import Tensor
from ...dtypes import DataType
from .marks import COUNTS_MICROBATCHES, OF_RANK
from .mesh import Mesh

_OVERRIDE = "_gradient_op_type"


class RankProgram:
    """Adds the nodes of the first rank of each stage to a graph; `on_stage` says of which."""

    def __init__(self, b: GraphBuilder, mesh: Mesh, microbatches: int = 1) -> None:
        """Between the instances of two collectives there are as many numbers as there are micro-batches."""
        self.b = b
        self.mesh = mesh
        self.stage = 0
        self._instances = count(1, microbatches)
        self._constants: dict[tuple[str, int], Tensor] = {}

    @property
    def rank(self) -> int:
        """The first rank of the stage, for which nodes are made now."""
        return self.stage * self.mesh.per_stage

    @contextmanager
    def on_stage(self, stage: int, device: str) -> Iterator[None]:
        """Makes the nodes of the block on the device of a stage."""
        outer, self.stage = self.stage, stage
        try:
            with self.b.device(device):
                yield
        finally:
            self.stage = outer

    # What differs by rank

    def position(self, axes: str) -> Tensor:
        """The place of the rank along some axes, an int32 scalar."""
        return self._of_rank("position", axes, self.mesh.position(axes, self.rank))

    def _key(self, axes: str) -> Tensor:
        return self._of_rank("key", axes, self.mesh.key(axes, self.rank))

    def _of_rank(self, what: str, axes: str, value: int) -> Tensor:
        return self._constant(f"{what}/{axes.replace('+', '_')}", value, {OF_RANK: f"{what}:{axes}"})

    def _size(self, axes: str) -> Tensor:
        return self._constant(f"size/{axes.replace('+', '_')}", self.mesh.size(axes), {})

    def _microbatch(self) -> Tensor:
        return self._constant("microbatch", 0, {COUNTS_MICROBATCHES: True})

    def _constant(self, name: str, value: int, attrs: dict[str, Any]) -> Tensor:
        """A constant of the stage, made once."""
        if (name, self.stage) not in self._constants:
            with self.b.outside_scopes():
                made = self.b.constant(value, DataType.INT32, name=f"mesh/stage_{self.stage}/{name}", attrs=attrs)
            self._constants[name, self.stage] = made
        return self._constants[name, self.stage]

    # Collectives

    def all_reduce(self, x: Tensor, axes: str, *, merge: str = "Add", name: str = "all_reduce") -> Tensor:
        """The sum of x over the ranks, whose gradient passes as it is; or the "Max" or "Min", which has none."""
        return self._collective(
            "CollectiveReduceV2",
            x,
            axes,
            name,
            merge_op=merge.encode(),
            final_op=b"Id",
            attrs={_OVERRIDE: "Partita>AsIs" if merge == "Add" else "Partita>None"},
        )

    def copied(self, x: Tensor, axes: str, *, name: str = "copied") -> Tensor:
        """x, of which each rank makes something else: its gradient is the sum of theirs."""
        if self.mesh.size(axes) == 1:
            return x
        return self.b.op("Partita>CopiedOver", x, *self._seat(axes), name=name, attrs=self._marks(axes))[0]

    def all_gather(self, x: Tensor, axes: str, *, name: str = "all_gather") -> Tensor:
        """The rows of all ranks, in the order of ranks. The gradient is summed and each rank gets that of its rows."""
        op = "Partita>AllGather" if x.dtype is DataType.BFLOAT16 else "CollectiveGatherV2"
        return self._collective(op, x, axes, name)

    def reduce_scatter(self, x: Tensor, axes: str, *, name: str = "reduce_scatter") -> Tensor:
        """The rank's rows of the sum of x over the ranks; its gradients are gathered."""
        return self._collective("CollectiveReduceScatterV2", x, axes, name, merge_op=b"Add", final_op=b"Id")

    def all_to_all(self, x: Tensor, axes: str, *, name: str = "all_to_all") -> Tensor:
        """From [ranks, ...] row k of every rank to rank k, in the order of ranks; gradients go back."""
        return self._collective("CollectiveAllToAllV2", x, axes, name)

    def all_to_all_v(
        self, x: Tensor, counts: Tensor, axes: str, *, name: str = "all_to_all", **attrs: Any
    ) -> tuple[Tensor, Tensor]:
        """Rows of x to every rank, as many as `counts` says; those received, and how many came from each."""
        if self.mesh.size(axes) == 1:
            return x, counts
        marks = {**self._marks(axes), **attrs}
        made = self.b.op("Partita>AllToAllV", x, counts, *self._seat(axes), [], name=name, attrs=marks)
        return made[0], made[1]

    def permute(self, x: Tensor, axes: str, *, shift: int = 1, name: str = "permute") -> Tensor:
        """What the rank `shift` places before has, in a circle; the gradient goes the other way."""
        return self._collective("Partita>CollectivePermute", x, axes, name, shift=shift)

    def _collective(
        self, op: str, x: Tensor, axes: str, name: str, *, attrs: dict[str, Any] | None = None, **own: Any
    ) -> Tensor:
        if self.mesh.size(axes) == 1:
            return x
        marks = {**self._marks(axes), **(attrs or {})}
        return self.b.op(op, x, *self._seat(axes), [], name=name, attrs=marks, **own)[0]

    def _seat(self, axes: str) -> tuple[Tensor, Tensor, Tensor]:
        return self._size(axes), self._key(axes), self._microbatch()

    def _marks(self, axes: str) -> dict[str, Any]:
        return {MESH: self.mesh.text, AXIS: axes, INSTANCE: next(self._instances)}
