"""The configurations of a search space as columns, each once, before any rule says what is possible.

Axes are added one after the other; what an axis may be depends on those before it. A row is repeated for each value:

    tp  pp          interleave by pp {1: (1,), 2: (1, 2)}          tp  pp  interleave
    8   1      ->                                                  8   1   1
    4   2                                                          4   2   1
                                                                   4   2   2

What changes nothing has one value: cp_kind with cp=1, sequence_parallel with tp=1, zero with dp=1, zero_group with
zero=0, the schedule of a pipeline of one rank. The plain loop would be a nest of thirteen; it takes a second where this
takes some milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import TypeAlias

import numpy as np

from ....graph.arrays import Flags, Numbers
from ..configurations import CONTEXT_KINDS, SCHEDULES
from .space import SearchSpace

AxisTable: TypeAlias = dict[str, Numbers]
"""columns by name, equally long"""

_1F1B, _INTERLEAVED = SCHEDULES.index("1f1b"), SCHEDULES.index("interleaved")


def layouts(space: SearchSpace) -> AxisTable:
    """What ranks there are and how micro-batches run: tp, cp, pp, dp, ep, cp_kind, microbatch, interleave, schedule."""
    table: AxisTable = {"tp": np.array(space.values("tp"), dtype=np.int64)}
    for axis in ("cp", "pp"):
        table = _crossed(table, axis, space.values(axis))
    table = _with_data_ranks(table, space)
    table = _by_value(table, "ep", "dp", space.expert_ranks)
    kinds, kind = space.values("cp_kind"), space.idle("cp_kind", CONTEXT_KINDS.index("ring"))
    table = _by_value(table, "cp_kind", "cp", lambda cp: kinds if cp > 1 else kind)
    table = _crossed(table, "microbatch", space.values("microbatch"))
    table = _by_value(table, "interleave", "pp", space.interleaves)
    return _with_schedules(table, space)


class Variants:
    """What else is free in a layout: sequence_parallel, recompute, zero and zero_group."""

    def __init__(self, space: SearchSpace, table: AxisTable) -> None:
        ranks_of_host = np.maximum(space.per_host // (table["tp"] * table["cp"]), 1)
        keys = np.stack([table["tp"] > 1, table["dp"], ranks_of_host])
        unique, kind = np.unique(keys, axis=1, return_inverse=True)
        self._kind: Numbers = kind.reshape(-1)
        options = [_free(space, bool(tp), int(dp), int(ranks)) for tp, dp, ranks in unique.T]
        self._options = options or [_free(space, False, 1, 1)]  # an empty table has the columns too

    @property
    def counts(self) -> Numbers:
        """How many each layout has."""
        return np.array([len(option["zero"]) for option in self._options], dtype=np.int64)[self._kind]

    def of(self, table: AxisTable, rows: Flags) -> AxisTable:
        """The configurations of some of the layouts."""
        return _expanded(kept(table, rows), self._kind[rows], self._options)


def kept(table: AxisTable, rows: Flags) -> AxisTable:
    """Some of the rows."""
    return {name: column[rows] for name, column in table.items()}


def length(table: AxisTable) -> int:
    """The number of rows."""
    return len(next(iter(table.values())))


def _with_data_ranks(table: AxisTable, space: SearchSpace) -> AxisTable:
    """dp, where not given what the other axes leave of the devices."""
    given = space.asked.values("dp")
    ranks = table["tp"] * table["cp"] * table["pp"]
    if given is None:
        table = kept(table, space.devices % ranks == 0)
        return table | {"dp": space.devices // (table["tp"] * table["cp"] * table["pp"])}
    table = _crossed(table, "dp", given)
    devices = table["tp"] * table["cp"] * table["pp"] * table["dp"]
    return kept(table, devices == space.devices if space.uses_all_devices else devices <= space.devices)


def _with_schedules(table: AxisTable, space: SearchSpace) -> AxisTable:
    """Several stages of a rank are interleaved, one runs as 1F1B or GPipe; without a pipeline all is 1F1B."""
    one = tuple(it for it in space.values("schedule") if it != _INTERLEAVED)
    several = tuple(it for it in space.values("schedule") if it == _INTERLEAVED)
    idle = one and space.idle("schedule", _1F1B)
    kinds = np.where(table["interleave"] > 1, 2, (table["pp"] > 1).astype(np.int64))
    options = [{"schedule": np.array(values, dtype=np.int64)} for values in (idle, one, several)]
    return _expanded(table, kinds, options)


def _free(space: SearchSpace, is_cut: bool, dp: int, ranks_of_host: int) -> AxisTable:
    sequence = space.values("sequence_parallel") if is_cut else space.idle("sequence_parallel", 0)
    shards = [
        (zero, group)
        for zero in (space.values("zero") if dp > 1 else space.idle("zero", 0))
        for group in (space.shard_groups(dp, ranks_of_host) if zero else (dp,))
    ]
    rows = [
        (flag, recompute, *shard) for flag, recompute, shard in product(sequence, space.values("recompute"), shards)
    ]
    columns = np.array(rows, dtype=np.int64).reshape(-1, 4).T
    return dict(zip(("sequence_parallel", "recompute", "zero", "zero_group"), columns, strict=True))


def _crossed(table: AxisTable, name: str, values: Sequence[int]) -> AxisTable:
    kinds = np.zeros(length(table), dtype=np.int64)
    return _expanded(table, kinds, [{name: np.array(values, dtype=np.int64)}])


def _by_value(table: AxisTable, name: str, key: str, values: Callable[[int], Sequence[int]]) -> AxisTable:
    """Adds an axis whose values depend on those of another."""
    unique, kinds = np.unique(table[key], return_inverse=True)
    if not len(unique):
        return table | {name: unique}
    return _expanded(table, kinds, [{name: np.array(values(int(it)), dtype=np.int64)} for it in unique])


def _expanded(table: AxisTable, kinds: Numbers, options: Sequence[Mapping[str, Numbers]]) -> AxisTable:
    """Each row once for every row of the options of its kind, in order."""
    sizes = np.array([len(next(iter(option.values()))) for option in options], dtype=np.int64)
    starts = np.cumsum(sizes) - sizes
    counts = sizes[kinds]
    rows = np.repeat(np.arange(len(kinds)), counts)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    chosen = starts[kinds][rows] + within
    added = {name: np.concatenate([option[name] for option in options])[chosen] for name in options[0]}
    return {name: column[rows] for name, column in table.items()} | added
