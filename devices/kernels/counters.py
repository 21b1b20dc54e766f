"""What counts the operations and bytes of one op, found once for many of its uses.

counters = counters_of("MatMul")
counters.flops(c), counters.bytes(c)        what `flops_of(c)` and `bytes_of(c)` say of each use
"""

from __future__ import annotations

from typing import NamedTuple

from .op_cost import (
    CostContext,
    CountFunction,
    elements_written,
    input_bytes,
    is_free,
    is_on_host,
    output_bytes,
    tables,
)

_TABLES = tables()
_FLOPS, _BYTES, _WAITS = (_TABLES[what] for what in ("operations", "bytes", "nanoseconds"))


class Counters(NamedTuple):
    """What counts one run of an op, found once for many: operations, bytes, and nanoseconds that it waits or None.

    The functions raise IndexError or ValueError where shapes do not fit the op.
    """

    flops: CountFunction
    bytes: CountFunction
    waits: CountFunction | None


def counters_of(op: str) -> Counters:
    """The counters of an op."""
    if is_free(op) or is_on_host(op):
        return Counters(_nothing, _nothing, _WAITS.get(op))
    return Counters(_FLOPS.get(op) or elements_written, _BYTES.get(op) or _all_bytes, _WAITS.get(op))


def _nothing(c: CostContext) -> int:
    return 0


def _all_bytes(c: CostContext) -> int:
    return input_bytes(c) + output_bytes(c)
