"""What the blocks of a transformer share: where a layer is, and what a rank has of rows, sequence and weights.

    network = RankNetwork(program, parameters, split, RankSizes(layers=4, batch=2, sequence=8, devices=("/gpu:0",)))
    with network.layer(3):                        nodes are on the device of layer 3 and in scope "layer_3"
        y = column(network, x, "up", 64, 256)

Activations are rows, one for each token, and the sequence comes first: the row of token p of sequence n is p * batch +
n. So every cut along the sequence is a cut along the rows:

    tokens of a sequence       8, with cp=2 each rank has 4, as `sequence.py` says which
    rows of a rank             `rows` = 4 * 2 = 8 in products and in attention
    own rows of a rank         `own_rows`: with sequence parallelism over tp=2 only 4 between the products, where norms
                               and residuals are (Korthikanti et al. 2022: Reducing activation recomputation)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple

import numpy as np

from ....errors import InvalidArgumentError, UnimplementedError
from ....graph.builder.builder import GraphBuilder
from ....graph.builder.handles import Operation, Tensor
from ....graph.dtypes import DataType
from ....graph.parallel.devices_of_nodes import host_of
from ....graph.parallel.mesh.rank_program import RankProgram
from ...models.nearest import nearest_multiples, or_text
from ...models.split import Split
from .parameters import RankParameters

MOST_CHUNKS, ROWS_OF_CHUNK = 4, 8192


@dataclass(frozen=True, slots=True)
class RankSizes:
    """What a rank program is built for."""

    layers: int
    """of the whole model"""
    batch: int
    """sequences, or images, of a micro-batch"""
    sequence: int
    """tokens of a whole sequence; ranks of cp have a part each"""
    devices: tuple[str, ...]
    """the device of the first rank of each stage"""
    fused: bool = True
    """whether Partita's own ops are used; otherwise TensorFlow's compute the same"""
    imbalance: float = 1.0
    """on the clock, where no router decides: the rows that the busiest rank's experts get, by the mean of ranks"""
    cache: int = 0
    """for inference, tokens of a sequence that keys and values are kept of; a `sequence` of 1 is decoded, one of
    more tokens is the beginning"""
    is_full: bool = False
    """whether the token that is decoded is always the last of a full cache, and nothing counts them: for the clock"""

    def __post_init__(self) -> None:
        if self.cache and self.sequence > self.cache:
            raise InvalidArgumentError(
                f"{self.sequence} tokens do not fit into a cache of {self.cache}; give a larger one"
            )
        if not self.imbalance >= 1:
            raise InvalidArgumentError(f"imbalance={self.imbalance!r} is the most by the mean; give 1 or more")


class RankInput(NamedTuple):
    """A placeholder of a micro-batch: its shape, which axis is the sequence, if one is, and its stage."""

    shape: tuple[int, ...]
    sequence_axis: int | None
    stage: int


class RankNetwork:
    """The network of one rank while its nodes are made."""

    def __init__(self, program: RankProgram, parameters: RankParameters, split: Split, sizes: RankSizes) -> None:
        """Raises InvalidArgumentError when ranks cannot share rows or layers, or for a device of each stage too few."""
        if sizes.cache and split.cp > 1:
            raise UnimplementedError(f"a cache of keys and values is not shared out over cp={split.cp}; use cp=1")
        if len(sizes.devices) != split.pp:
            raise InvalidArgumentError(f"pp={split.pp} stages have {len(sizes.devices)} devices; give one for each")
        self.program = program
        self.parameters = parameters
        self.split = split
        self.sizes = sizes
        self.tp: int = program.mesh.tp
        self.cp: int = program.mesh.cp
        self.decodes = sizes.cache > 0 and sizes.sequence == 1
        """whether one token of each sequence is computed, and earlier ones are in a cache"""
        self.scatters_rows = split.sequence_parallel and self.tp > 1 and not self.decodes
        self.rows = self._shared(sizes.sequence, self.cp, "tokens of a sequence", "cp") * sizes.batch
        self.own_rows = self.rows
        if self.scatters_rows:
            self.own_rows = self._shared(self.rows, self.tp, "rows of a rank", "tp, which sequence parallelism shares")
        self.tables: dict[tuple[int, bytes, float], tuple[Tensor, Tensor]] = {}
        """tables of rotary positions, by stage and what is in them"""
        self._made_once: dict[tuple[int, str], Tensor] = {}
        self._stages = [
            stage % split.pp for stage, count in enumerate(split.stages_of(sizes.layers)) for _ in range(count)
        ]
        self.inputs: dict[str, RankInput] = {}
        """what a rank is fed for a micro-batch, by placeholder"""
        self.writes: list[tuple[int, Operation]] = []
        """what a step of inference runs beside its fetches, with the stage of each: caches and positions"""
        self._offsets: dict[tuple[int, str, int], Tensor] = {}
        self._positions = [self._counted(stage) for stage in range(split.pp)] if sizes.cache else []

    @property
    def b(self) -> GraphBuilder:
        """The builder of the graph."""
        return self.program.b

    @property
    def length(self) -> int:
        """The tokens that the rank has of each sequence."""
        return self.sizes.sequence // self.cp

    @property
    def is_float8(self) -> bool:
        """Whether products with weights are in 8-bit floats; attention, routers and logits are not."""
        return self.split.precision == "fp8"

    @property
    def chunks(self) -> int:
        """In how many chunks rows go through products whose exchanges over tp may hide: one for every 8192, up to 4.

        Or the next smaller number that divides the rows of a rank. Gradients of weights are summed over chunks, which
        costs more than is hidden where a chunk has fewer rows, or where rows are not shared out over tp.
        """
        if not self.scatters_rows or "tp" not in self.split.overlap or self.sizes.cache:
            return 1
        most = max(1, min(MOST_CHUNKS, self.rows // ROWS_OF_CHUNK))
        return next(count for count in range(most, 0, -1) if self.own_rows % count == 0)

    @property
    def partial(self) -> tuple[str, ...]:
        """The axes over which gradients of weights that meet own rows alone are still to be added up."""
        return ("tp",) if self.scatters_rows else ()

    def fed(
        self, name: str, dtype: DataType, shape: Sequence[int], stage: int, sequence_axis: int | None = None
    ) -> Tensor:
        """A placeholder of the micro-batch, on the host of a stage; a rank of cp has its part of `sequence_axis`."""
        self.inputs[name] = RankInput(tuple(shape), sequence_axis, stage)
        with self.program.on_stage(stage, host_of(self.sizes.devices[stage])):
            return self.b.placeholder(name, dtype, list(shape))

    def tokens(self) -> Tensor:
        """The placeholder "tokens" [batch, length], on the first stage."""
        return self.fed("tokens", DataType.INT32, (self.sizes.batch, self.length), 0, 1)

    def labels(self, *, is_one: bool = False) -> Tensor:
        """The placeholder "labels" [batch, length], on the last stage; with `is_one` [batch], one of each sequence."""
        if is_one:
            return self.fed("labels", DataType.INT32, (self.sizes.batch,), self.split.pp - 1)
        return self.fed("labels", DataType.INT32, (self.sizes.batch, self.length), self.split.pp - 1, 1)

    @contextmanager
    def embedding(self) -> Iterator[None]:
        """Makes the nodes of the block on the first stage."""
        with self.program.on_stage(0, self.sizes.devices[0]), self.b.scope("embedding"):
            yield

    @contextmanager
    def layer(self, number: int) -> Iterator[None]:
        """Makes the nodes of the block on the stage of a layer."""
        stage = self._stages[number]
        with self.program.on_stage(stage, self.sizes.devices[stage]), self.b.scope(f"layer_{number}"):
            yield

    @contextmanager
    def last(self, scope: str) -> Iterator[None]:
        """Makes the nodes of the block on the last stage."""
        stage = self.split.pp - 1
        with self.program.on_stage(stage, self.sizes.devices[stage]), self.b.scope(scope):
            yield

    # Weights

    def matrix(
        self,
        name: str,
        shape: tuple[int, int],
        fan_in: int,
        *,
        split: int | None = None,
        start: Callable[[], Tensor] | None = None,
    ) -> Tensor:
        """Weights of a product: columns (split=1) or rows (split=0) of the rank, with a deviation of 1 / sqrt(fan_in).

        What is not split meets the rank's own rows. `start` makes the whole initial value in another way.
        """
        partial = () if split is not None else self.partial
        scale = sqrt(3 / fan_in)
        return self.parameters.weight(name, shape, split=split, scale=scale, start=start, partial_over=partial)

    def product(self, x: Tensor, weights: Tensor, name: str) -> Tensor:
        """x @ weights, in 8-bit floats where the precision is "fp8"."""
        return self.b.op("Partita>Float8MatMul" if self.is_float8 else "MatMul", x, weights, name=name)[0]

    def vector(self, name: str, size: int, start: float, *, is_split: bool = False, is_cast: bool = True) -> Tensor:
        """A bias or gain; one that is not split meets the rank's own rows. `is_cast` is that of `weight`."""
        if is_split:
            return self.parameters.weight(name, (size,), split=0, start=start, is_cast=is_cast)
        return self.parameters.weight(name, (size,), start=start, partial_over=self.partial, is_cast=is_cast)

    # Inference

    @property
    def position(self) -> Tensor:
        """The number of the token that is decoded, an int32 scalar; there are as many in the cache."""
        return self._positions[self.program.stage]

    def _counted(self, stage: int) -> Tensor:
        """What a variable on the host of a stage counts: a token is decoded, or the beginning sets it."""
        if self.sizes.is_full:
            with self.program.on_stage(stage, self.sizes.devices[stage]), self.b.scope("position"):
                return self.b.constant(self.sizes.cache - 1, DataType.INT32, name=f"stage_{stage}")
        with self.program.on_stage(stage, host_of(self.sizes.devices[stage])), self.b.scope("position"):
            count = self.parameters.state(f"stage_{stage}", (), DataType.INT32)
            read = self.b.op("ReadVariableOp", count, dtype=DataType.INT32, name="read")
            if self.decodes:
                has_room = self.b.op("Less", read, self.sizes.cache, name="has_room")
                message = f"the cache of {self.sizes.cache} tokens is full: make a larger one, or start again"
                checked = self.b.op("Assert", has_room, [np.array(message, object)], name="checked")
                change = self.b.op("AssignAddVariableOp", count, 1, control=[checked], name="next")
            else:
                change = self.b.op("AssignVariableOp", count, self.length, control=[read], name="set")
        self.writes.append((stage, change))
        return read[0]

    # Small helps

    def once(self, name: str, make: Callable[[], Tensor]) -> Tensor:
        """What `make` makes, made once for each stage under that name."""
        key = (self.program.stage, name)
        if key not in self._made_once:
            self._made_once[key] = make()
        return self._made_once[key]

    def offset(self, axes: str, step: int) -> Tensor:
        """The position of the rank along some axes times `step`, an int32 scalar; made once for each stage."""
        key = (self.program.stage, axes, step)
        if key not in self._offsets:
            position = self.program.position(axes)
            self._offsets[key] = position if step == 1 else self.b.op("Mul", position, step, name="offset")[0]
        return self._offsets[key]

    def own(self, x: Tensor, name: str) -> Tensor:
        """The rank's own rows of x [rows, width], which all ranks of tp have alike."""
        if not self.scatters_rows:
            return x
        begin = self.b.op("Pack", [self.offset("tp", self.own_rows), 0], name=f"{name}/begin")
        return self.b.op("Slice", x, begin, [self.own_rows, -1], name=name)[0]

    def reshaped(self, x: Tensor, shape: Sequence[int], name: str = "Reshape") -> Tensor:
        """x with another shape."""
        return self.b.op("Reshape", x, list(shape), name=name)[0]

    def transposed(self, x: Tensor, order: Sequence[int], name: str = "Transpose") -> Tensor:
        """x with its axes in another order."""
        return self.b.op("Transpose", x, list(order), name=name)[0]

    def heads(self, x: Tensor, heads: int, size: int) -> Tensor:
        """Rows [rows, heads * size] as [length, batch, heads, size]."""
        return self.reshaped(x, [self.length, self.sizes.batch, heads, size])

    def wide(self, x: Tensor) -> Tensor:
        """x in float32 where it has half precision."""
        return self.cast(x, wide_type(x.dtype))

    def cast(self, x: Tensor, dtype: DataType) -> Tensor:
        """x in another type."""
        return x if x.dtype is dtype else self.b.op("Cast", x, DstT=dtype)[0]

    @staticmethod
    def _shared(number: int, ranks: int, what: str, axis: str) -> int:
        if number % ranks:
            near = or_text(nearest_multiples(number, ranks))
            raise InvalidArgumentError(
                f"{number} {what} are not divisible by the {ranks} ranks of {axis}; choose {near}"
            )
        return number // ranks


def wide_type(dtype: DataType) -> DataType:
    """The type in which sums and norms of a type are computed: float32, or float64 for float64."""
    return DataType.DOUBLE if dtype is DataType.DOUBLE else DataType.FLOAT
