"""The all-to-all of unequal parts, whose members say how many rows each of the others gets.

    member 0    rows [a b c], counts [1 2]          [a d]      counts [1 1]
    member 1    rows [d], counts [1 0]              [b c]      counts [2 0]

It is what a mixture of experts sends: rows are sorted by the member that has their expert, and come back by a second
one with the counts that were received.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ..checks import require
from ..registry import Call, Construction, Start, deferred_kernel
from .collective_ops import by_inputs, join
from .meeting import Brings, Member
from .meeting_table import Terms


@deferred_kernel("Partita>AllToAllV")
def all_to_all_v(node: Construction) -> Start:
    """Rows to each member by counts, in order of rank; outputs are the rows that came, and how many from each."""
    find = by_inputs(node)

    def start(call: Call, value: Array, counts: Array, *where: Array) -> None:
        key, size, rank = find(*where)
        value, counts = np.asarray(value), np.asarray(counts)
        _check(value, counts, size)
        terms = Terms("an all-to-all of unequal parts", size, node.output_types[0], (None, *value.shape[1:]))
        join(node, call, key, Member(call, node.device, value, terms, exchanged_parts, rank, counts=counts))

    return start


def _check(value: Array, counts: Array, size: int) -> None:
    """InvalidArgumentError for counts that are not one for each member, from 0 on, or do not add up to the rows."""
    require(value.ndim > 0, "an all-to-all sends rows along axis 0, but its input is a scalar; reshape it to one row")
    require(
        counts.shape == (size,),
        f"send_counts must have a count for each of {size} members, but their shape is {shape_text(counts.shape)}",
    )
    numbers = counts.tolist()  # of any size, where the sum of an array wraps around
    require(min(numbers, default=0) >= 0, f"send_counts must not be negative, but are {numbers}")
    require(
        sum(numbers) == len(value),
        f"send_counts {numbers} add up to {sum(numbers)} rows, but the input has {len(value)}",
    )


def exchanged_parts(members: Sequence[Brings]) -> Sequence[tuple[Array, Array]]:
    """What each member gets: a part of the value of each, in order of rank, and the numbers of rows of these parts."""
    parts = [_parts(member) for member in members]
    outputs = []
    for rank, member in enumerate(members):
        mine = [sent[rank] for sent in parts]
        assert member.counts is not None
        received = np.array([len(part) for part in mine], member.counts.dtype)
        outputs.append((np.concatenate(mine), received))
    return outputs


def _parts(member: Brings) -> list[Array]:
    assert member.value is not None
    assert member.counts is not None
    return np.split(member.value, np.cumsum(member.counts)[:-1])
