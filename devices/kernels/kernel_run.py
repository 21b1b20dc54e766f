"""Which measured kernel an op is like: a family of kernels of which devices may have fits, and the op's sizes in it.

The modules `*_costs` of the families say so, where an op is one kernel of such a family:

    Softmax (64, 128, 512)          part "elementwise_fp32", op softmax, 8192 rows of 512 columns
    Partita>LayerNormGrad           as much as 1.5 layer norms of its input, by the bytes
    Tanh                            streams as the measured kernel "tanh"
    AddV2, and whatever moves bytes streams as "add" or "relu", by how many arrays it reads

A family that is declared here needs nothing else in the sources of costs: texts and sizes are the columns of its rows
(`devices/timing/fits/kernels`), and where no device has a fit of the part the op is priced as without the declaration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import NamedTuple

from ...graph.dtypes import item_size
from ...graph.ops.op_table import OpTable
from .op_cost import CostContext


class KernelRun(NamedTuple):
    """The part of a calibration, texts and sizes of a row of its family, and how many times as long the op takes."""

    part: str
    texts: Mapping[str, str]
    sizes: Mapping[str, int]
    times: float = 1.0


KernelRunOf = Callable[[CostContext], KernelRun | None]
KernelRunsOf = Callable[[CostContext], Sequence[KernelRun]]

STREAMS, PRODUCTS, FLOAT_BYTES = "elementwise_fp32", "products_fp32", 4
_RUNS: OpTable[KernelRunOf] = OpTable("a measured kernel", __package__, "_costs", via=__name__)
_PARTS: OpTable[KernelRunsOf] = OpTable("kernels of its parts", __package__, "_costs", via=__name__)
_STREAMS: OpTable[str] = OpTable("a kind of streaming kernel", __package__, "_costs", via=__name__)


def runs_as(*ops: str) -> Callable[[KernelRunOf], KernelRunOf]:
    """Registers the function that returns which kernel one use of `ops` is, None for one that is none.

    AlreadyExistsError if one of them has such a function.
    """

    def register(find: KernelRunOf) -> KernelRunOf:
        for op in ops:
            _RUNS.add(op, find)
        return find

    return register


def parts_run_as(*ops: str) -> Callable[[KernelRunsOf], KernelRunsOf]:
    """Registers the function that returns the kernels that one use of `ops` takes without a kernel for the whole.

    AlreadyExistsError if one of them has such a function.
    """

    def register(find: KernelRunsOf) -> KernelRunsOf:
        for op in ops:
            _PARTS.add(op, find)
        return find

    return register


def kernels_of_parts(c: CostContext) -> Sequence[KernelRun]:
    """The kernels of the op's parts, in order; none for other ops, for empty tensors and where shapes do not fit."""
    find = _PARTS.get(c.op)
    if find is None:
        return ()
    try:
        runs = find(c)
    except (IndexError, ValueError, ZeroDivisionError):
        return ()
    return runs if all(min(run.sizes.values()) > 0 for run in runs) else ()


def product_of_batch(batch: int, m: int, n: int, k: int) -> KernelRun:
    """`batch` products of m x k by k x n in float32."""
    return KernelRun(PRODUCTS, {"op": "linear" if batch == 1 else "bmm"}, {"batch": batch, "m": m, "n": n, "k": k})


def streams_as(kind: str, *ops: str) -> None:
    """Registers elementwise ops that are like the measured kernel `kind`; AlreadyExistsError if one has a kind."""
    for op in ops:
        _STREAMS.add(op, kind)


def is_run(op: str) -> bool:
    """Whether uses of that op may be kernels of a family."""
    return op in _RUNS


def kernel_run_of(c: CostContext) -> KernelRun | None:
    """The kernel that the op is; None for other ops, for empty tensors and where shapes do not fit the op."""
    find = _RUNS.get(c.op)
    if find is None:
        return None
    try:
        run = find(c)
    except (IndexError, ValueError, ZeroDivisionError):
        return None
    return run if run is not None and min(run.sizes.values()) > 0 else None


def rows_run(c: CostContext, kind: str, arrays: float = 2.0) -> KernelRun:
    """A kernel along the last axis of the first input that moves as many bytes as `arrays` of it; `kind` moves two."""
    columns = c.inputs[0][-1] * item_size(c.input_types[0])
    sizes = {"rows": prod(c.inputs[0][:-1]), "columns": -(-columns // FLOAT_BYTES)}
    return KernelRun(STREAMS, {"op": kind}, sizes, arrays / 2)


def stream_kind(c: CostContext) -> str:
    """The measured kernel that an op streams like: by its kind, and by whether it reads several arrays."""
    one, two = _KINDS[_STREAMS.get(c.op, "")]
    if len(c.inputs) < 2 or not two or not c.outputs:
        return one or two
    written = c.outputs[0]
    return two if sum(dims == written for dims in c.inputs) > 1 or not one else one


def arrays_of(kind: str) -> int:
    """How many arrays a measured kernel reads and writes."""
    return 3 if kind in OF_TWO_ARRAYS else 2


OF_TWO_ARRAYS = ("add", "mul", "div", "pow")
_KINDS: Mapping[str, tuple[str, str]] = {
    **{kind: (f"{kind}u", kind) for kind in OF_TWO_ARRAYS},
    **{kind: (kind, "") for kind in ("relu", "gelu", "tanh")},
    "": ("relu", "add"),
}
"""by kind the measured kernel with one array, and that with two"""
