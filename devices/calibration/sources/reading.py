"""From a file of measurements to the rows that it has of one device; its columns or its text tell which sort it is.

a file .pb                                   the trace of a step
lines "#  Rank  0 ..." and "# size count"    the log of a program of nccl-tests
columns op,shapes,...                        a table of op timings
columns system,m,n,k,...                     a table of products; system,op_name,num_gpus,...: one of collectives
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ....errors import InvalidArgumentError
from ...spec import DeviceSpec
from ..tables import ColumnSpec, MeasuredTable, header_of, read_table, text_of
from .b200 import is_b200_table, read_b200_table
from .layer_tables import read_attentions, read_grouped_products
from .measurements import Measurements, TimedCollective, TimedProduct
from .nccl_tests import CALIBRATED, is_nccl_tests, read_nccl_tests
from .op_table import read_op_table
from .step_trace import is_step_trace, read_step_trace

_GEMM = (ColumnSpec("system"), *(ColumnSpec(name, "count") for name in "mnk"), ColumnSpec("latency_ms", "positive"))
_NCCL = (
    ColumnSpec("system"),
    ColumnSpec("op_name"),
    ColumnSpec("num_gpus", "count"),
    ColumnSpec("elements_fp16", "count"),
    ColumnSpec("latency_ms", "positive"),
)


def read_source(
    path: Path,
    names: Sequence[str],
    collective: str | None = None,
    spec: DeviceSpec | None = None,
    graph: Path | None = None,
) -> Measurements:
    """The rows of a file about the device of those names (its name and aliases), whose numbers are `spec`.

    `graph` is the GraphDef that the traces of steps are of, for those that have none.

    InvalidArgumentError for a file of no known sort, and where the device is not in the data.
    """
    if is_step_trace(path) and spec is not None:
        return read_step_trace(path, spec, graph)
    if is_nccl_tests(text_of(path)):
        return read_nccl_tests(path, collective)
    header = set(header_of(path, ["op", "shapes", "dtype", "latency_ms"]))
    if {"op", "shapes"} <= header:
        return read_op_table(path, spec)
    if {"head_num", "qk_head_dim"} <= header:
        return read_attentions(path)
    if {"ng", "stage"} <= header:
        return read_grouped_products(path)
    if is_b200_table(header):
        return read_b200_table(path, header, names)
    if {"op_name", "num_gpus"} <= header:
        return _collectives(read_table(path, _NCCL), names)
    if {"system", "m", "n", "k"} <= header:
        return _products(read_table(path, _GEMM), names)
    raise InvalidArgumentError(
        f"{path}:1: the columns {', '.join(sorted(header))} are of no known source; write op,shapes,dtype,latency_ms "
        "or give a log of nccl-tests"
    )


def _of_device(table: MeasuredTable, names: Sequence[str]) -> list[int]:
    rows = [row for row, system in enumerate(table.texts("system")) if system in names]
    if not rows:
        have = ", ".join(sorted(set(table.texts("system"))))
        raise InvalidArgumentError(f"{table.path}:1: no row is of {names[0]!r}; the systems of the file are {have}")
    return rows


def _products(table: MeasuredTable, names: Sequence[str]) -> Measurements:
    m, n, k = (table.counts(name) for name in "mnk")
    ms = table.floats("latency_ms")
    return Measurements(
        tuple(
            TimedProduct(int(m[r]), int(n[r]), int(k[r]), 1, "", float(ms[r]) * 1e6) for r in _of_device(table, names)
        )
    )


def _collectives(table: MeasuredTable, names: Sequence[str]) -> Measurements:
    ranks, elements, ms = table.counts("num_gpus"), table.counts("elements_fp16"), table.floats("latency_ms")
    rows = []
    for r in _of_device(table, names):
        kind = table.texts("op_name")[r].replace("alltoall", "all_to_all")
        if kind not in CALIBRATED:
            raise InvalidArgumentError(f"{table.where(r)}: op_name = {kind!r} is none of {', '.join(CALIBRATED)}")
        rows.append(TimedCollective(kind, int(ranks[r]), 2 * int(elements[r]), float(ms[r]) * 1e6))
    return Measurements((), (), tuple(rows))
