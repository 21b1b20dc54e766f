"""The ops that a rank of an inference step runs, in order, as a source of costs is asked about them: no graph is built.

    run = RankOps(bfloat16)
    run.product(8, 4096, 6144)                  MatMul [8, 4096] x [4096, 6144] -> [8, 6144], with 50 MB of weights
    run.moves("AddV2", 8 * 4096, operands=2)    AddV2 [32768] + [32768]
    run.meets("all_reduce", "tp", 65536)        all ranks of tp wait for each other
    run.items      [RankKernel, RankKernel, RankExchange]
    run.weight_bytes    50331648                run.most_bytes      196608, of the op with most activations

Small ops on whole numbers, which routers and exchanges of experts have many of, count as one kind (`small`): on a GPU
each takes what the smallest kernel does, whatever it computes. Shapes of other ops are those of the builders of graphs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from math import prod
from typing import Literal, NamedTuple, TypeAlias

from ....devices.kernels.op_cost import PortDims
from ....graph.dtypes import DataType, Dims, item_size
from ....graph.ops.properties import NodeProperties, properties_of

Axis: TypeAlias = Literal["tp", "ep"]
"""along which ranks exchange"""


class RankKernel(NamedTuple):
    """One op of the GPU with its shapes."""

    properties: NodeProperties
    inputs: PortDims
    outputs: PortDims


class RankExchange(NamedTuple):
    """An exchange among the ranks along an axis; nothing behind it is launched before it ends.

    `size_bytes` is that of `collective_time`; the kernels `beside` run meanwhile.
    """

    kind: str
    axis: Axis
    size_bytes: int
    beside: tuple[RankKernel, ...] = ()


class Remainder(NamedTuple):
    """An exchange that nothing waits for while the `kernels` run, which are before it: what is left of it then."""

    exchange: RankExchange
    kernels: tuple[RankKernel, ...]


class HostWait(NamedTuple):
    """Numbers that go to the host and are waited for there, `times` one after the other."""

    times: int


RankItem: TypeAlias = RankKernel | RankExchange | Remainder | HostWait


@cache
def _kind(op: str, attrs: tuple[tuple[str, object], ...]) -> NodeProperties:
    return properties_of(op, dict(attrs))


class RankOps:
    """What a rank runs, in order, the bytes of weights that it reads, and the most activations of one op.

    `compute` is the type of products and activations; with `is_float8` products with weights are in 8-bit floats.
    """

    def __init__(self, compute: DataType, *, is_float8: bool = False) -> None:
        self.compute, self.is_float8 = compute, is_float8
        self.wide = DataType.DOUBLE if compute is DataType.DOUBLE else DataType.FLOAT
        self.items: list[RankItem] = []
        self.weight_bytes = 0
        self.most_bytes = 0

    @property
    def element_bytes(self) -> int:
        """Of a number of activations."""
        return item_size(self.compute)

    def op(
        self, op: str, inputs: Sequence[Dims], outputs: Sequence[Dims], *, lasting: Sequence[int] = (), **attrs: object
    ) -> None:
        """An op with these attrs; inputs with the numbers `lasting` are weights or caches, no activations."""
        kernel = RankKernel(_kind(op, tuple(sorted(attrs.items()))), tuple(inputs), tuple(outputs))
        self.items.append(kernel)
        ports = [*zip(kernel.inputs, kernel.properties.input_types, strict=True)]
        passing = [port for number, port in enumerate(ports) if number not in lasting]
        made = zip(kernel.outputs, kernel.properties.output_types, strict=True)
        held = sum(prod(dims) * item_size(dtype) for dims, dtype in (*passing, *made))
        self.most_bytes = max(self.most_bytes, held)

    def meets(self, kind: str, axis: Axis, size_bytes: int, beside: Sequence[RankKernel] = ()) -> None:
        """An exchange along an axis."""
        self.items.append(RankExchange(kind, axis, size_bytes, tuple(beside)))

    def apart(self) -> RankOps:
        """Ops of the same types that run beside an exchange; they are put where they run."""
        return RankOps(self.compute, is_float8=self.is_float8)

    def kernels(self, first: int = 0) -> tuple[RankKernel, ...]:
        """The ops of the GPU from an item on."""
        return tuple(item for item in self.items[first:] if isinstance(item, RankKernel))

    def waits(self, times: int = 1) -> None:
        """The host waits for numbers of the GPU, or the GPU for the host's."""
        self.items.append(HostWait(times))

    # Products

    def product(
        self, rows: int, k: int, n: int, *, dtype: DataType | None = None, transpose: bool = False, keeps: bool = True
    ) -> None:
        """[rows, k] by weights [k, n]; of another type than the activations in that type, never in 8-bit floats.

        Without `keeps` other ops read the weights too, which are counted there.
        """
        of = dtype or self.compute
        weights = (n, k) if transpose else (k, n)
        narrow = self.is_float8 and dtype is None and not transpose
        attrs: Mapping[str, object] = {} if narrow else {"transpose_b": transpose}
        name = "Partita>Float8MatMul" if narrow else "MatMul"
        self.op(name, ((rows, k), weights), ((rows, n),), lasting=(1,), T=of, **attrs)
        if keeps:
            self.weight_bytes += k * n * item_size(of)

    def grouped_product(self, rows: int, groups: int, k: int, n: int) -> None:
        """[rows, k] that are sorted by group, by the weights [groups, k, n] of their groups."""
        name = "Partita>Float8GroupedMatMul" if self.is_float8 else "Partita>GroupedMatMul"
        shapes = ((rows, k), (groups, k, n), (groups,))
        self.op(name, shapes, ((rows, n),), lasting=(1,), T=self.compute, Trows=DataType.INT32)
        self.weight_bytes += groups * k * n * self.element_bytes

    # Ops that are bound by memory

    def moves(self, op: str, elements: int, *, operands: int = 1, dtype: DataType | None = None) -> None:
        """An op on each of so many elements of so many operands."""
        self.op(op, ((elements,),) * operands, ((elements,),), T=dtype or self.compute)

    def weighed(self, rows: int, width: int) -> None:
        """Each row times a number of its own."""
        self.op("Mul", ((rows, width), (rows, 1)), ((rows, width),), T=self.compute)

    def small(self, count: int, elements: int) -> None:
        """So many ops on whole numbers."""
        for _ in range(count):
            self.moves("Neg", elements, dtype=DataType.INT64)

    def cast(self, elements: int, source: DataType, target: DataType) -> None:
        """The same numbers in another type; nothing where it is the same type."""
        if source is not target:
            self.op("Cast", ((elements,),), ((elements,),), SrcT=source, DstT=target)

    def bias(self, rows: int, width: int) -> None:
        """A bias on each row."""
        self.op("BiasAdd", ((rows, width), (width,)), ((rows, width),), T=self.compute)
        self.weight_bytes += width * self.element_bytes

    def rms_norm(self, rows: int, width: int) -> None:
        """RMSNorm; its gain is in the wide type."""
        outputs = ((rows, width), (rows,))
        self.op("Partita>RMSNorm", ((rows, width), (width,)), outputs, T=self.compute, G=self.wide, U=self.wide)
        self.weight_bytes += width * item_size(self.wide)

    def layer_norm(self, rows: int, width: int) -> None:
        """LayerNorm; its gain and offset are in the wide type."""
        inputs, outputs = ((rows, width), (width,), (width,)), ((rows, width), (rows,), (rows,))
        self.op("Partita>LayerNorm", inputs, outputs, T=self.compute, G=self.wide, U=self.wide)
        self.weight_bytes += 2 * width * item_size(self.wide)

    def rotary(self, length: int, sequences: int, heads: int, size: int) -> None:
        """Positions of queries or of keys."""
        x, table = (length, sequences, heads, size), (length, size // 2)
        self.op("Partita>Rotary", (x, table, table), (x,), T=self.compute, U=self.wide, sequence_first=True)

    def parted(self, rows: int, *widths: int) -> None:
        """Rows into parts of these widths."""
        count = len(widths)
        inputs = ((rows, sum(widths)), (count,), ())
        self.op("SplitV", inputs, [(rows, width) for width in widths], T=self.compute, num_split=count)

    def joined(self, rows: int, *widths: int) -> None:
        """Parts of rows side by side."""
        inputs = [*((rows, width) for width in widths), ()]
        self.op("ConcatV2", inputs, ((rows, sum(widths)),), T=self.compute, N=len(widths))

    def gathered(self, rows: int, width: int, of: int) -> None:
        """Some rows of a table of so many rows."""
        inputs, outputs = ((of, width), (rows,), ()), ((rows, width),)
        indices, axis = DataType.INT64, DataType.INT32
        self.op("GatherV2", inputs, outputs, lasting=(0,), Tparams=self.compute, Tindices=indices, Taxis=axis)

    def transposed(self, first: int, second: int, dtype: DataType | None = None) -> None:
        """Rows become columns."""
        self.op("Transpose", ((first, second), (2,)), ((second, first),), T=dtype or self.compute)

    def cut(self, before: Dims, after: Dims, dtype: DataType | None = None) -> None:
        """A part of a tensor."""
        ends = (len(before),)
        self.op("Slice", (before, ends, ends), (after,), T=dtype or self.compute, Index=DataType.INT32)

    def written(self, sequences: int, heads: int, rows: int, size: int) -> None:
        """Rows into a cache."""
        value = (sequences, heads, rows, size)
        inputs = ((), (4,), (4,), (4,), value)
        self.op("ResourceStridedSliceAssign", inputs, (), T=self.compute, Index=DataType.INT32)
