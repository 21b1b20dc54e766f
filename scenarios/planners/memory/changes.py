"""What would make a configuration fit: the fewest other fields of its split, found by trying neighbours in columns.

    advice = smallest_change(step, configurations, row, limit_bytes=80e9)
    advice.parts      (("optimizer", 31e9), ("gradients", 10e9), ...)       the largest first
    advice.changes    {"zero": 1}                                         one field is enough
    advice.fits       True: reserved_bytes with these changes is within the limit; else the least that was found

Devices and the global batch stay: ranks that tp, pp and cp take are taken from dp, whose micro-batches become more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from ....errors import InvalidArgumentError, UnimplementedError
from ....graph.arrays import Floats, Numbers
from ...models.split import Split
from ..configurations import RECOMPUTATIONS, SCHEDULES, Configurations
from ..step import PlannedStep
from .columns import memory_columns

_STRONGER = ("none", "selective", "products", "full")
"""recomputation, by how little it leaves"""
_PREFERRED = (
    *("sequence_parallel", "zero", "recompute", "microbatch", "schedule", "interleave"),
    *("ep", "tp", "pp", "cp"),
)
"""in which order changes of one field are preferred: what costs less time comes first"""
_FIELD, _DOUBLING = 100.0, 30.0
"""what a change costs, in places of that order"""
_TAKEN_FROM_DP = ("tp", "pp", "cp")


class MemoryAdvice(NamedTuple):
    """What is largest, and what would help."""

    parts: tuple[tuple[str, float], ...]
    """bytes by category of the configuration as it is, the largest first"""
    changes: Mapping[str, object]
    """fields of the split with their other values; empty where nothing needs to change, or nothing helps"""
    split: Split
    """with the changes"""
    reserved_bytes: float
    """with the changes"""
    fits: bool

    @property
    def text(self) -> str:
        """As `Split.parse` reads them: "zero=1,recompute=full"."""
        return ",".join(name if value is True else f"{name}={value}" for name, value in self.changes.items())


def smallest_change(step: PlannedStep, configurations: Configurations, row: int, limit_bytes: float) -> MemoryAdvice:
    """The fewest changes with which the configuration of a row reserves at most `limit_bytes`.

    Of as few, those that cost less time. Where nothing fits, those that leave least. A split that the model cannot have
    is no answer. Raises as `memory_columns`.
    """
    own = configurations.taken(np.array([row]))
    neighbours, costs = _neighbours(own, has_experts=bool(step.model.shared_by_expert_parallel))
    reserved = memory_columns(step, neighbours).reserved
    now = memory_columns(step, own)
    parts = tuple(sorted(((k, float(v[0])) for k, v in now.by_category.items()), key=lambda part: -part[1]))
    best = next(_possible(step, neighbours, _preferred(reserved, costs, limit_bytes)), None)
    split = own.split(0)
    if best is None:
        return MemoryAdvice(parts, {}, split, float(now.reserved[0]), bool(now.reserved[0] <= limit_bytes))
    at, changed = best
    changes = {name: getattr(changed, name) for name in _PREFERRED if getattr(changed, name) != getattr(split, name)}
    return MemoryAdvice(parts, changes, changed, float(reserved[at]), bool(reserved[at] <= limit_bytes))


def _preferred(reserved: Floats, costs: Floats, limit_bytes: float) -> Numbers:
    """Rows: those that fit by what their changes cost, then the others by what they reserve."""
    fits = reserved <= limit_bytes
    return np.lexsort((reserved, np.where(fits, costs, np.inf), ~fits))


def _possible(step: PlannedStep, neighbours: Configurations, rows: Numbers) -> Iterator[tuple[int, Split]]:
    """Rows with their splits, of those that the model can have."""
    for row in rows.tolist():
        try:
            split = neighbours.split(row)
            split.check(step.model, step.sequence_length)
        except (InvalidArgumentError, UnimplementedError):
            continue
        yield row, split


def _neighbours(own: Configurations, *, has_experts: bool) -> tuple[Configurations, Floats]:
    """All combinations of other values, and what they cost: a change of each field, and each doubling of it."""
    now = {name: int(column[0]) for name, column in own.columns.items()}
    options = _options(now, has_experts=has_experts, has_stages=own.stages is not None)
    grid = np.meshgrid(*map(np.array, options.values()), indexing="ij")
    columns = {name: values.reshape(-1) for name, values in zip(options, grid, strict=True)}
    taken = np.prod([columns[name] // now[name] for name in _TAKEN_FROM_DP], axis=0)
    works = (now["dp"] % taken == 0) & ((now["dp"] // taken) % columns["ep"] == 0)
    works &= (columns["interleave"] == 1) | (columns["schedule"] == now["schedule"])
    columns = {name: values[works] for name, values in columns.items()}
    costs = np.zeros(len(columns["tp"]))
    for place, name in enumerate(_PREFERRED):
        doublings = np.abs(np.log2(np.maximum(columns[name], 1) / max(now[name], 1)))
        costs += np.where(columns[name] == now[name], 0, _FIELD + place + _DOUBLING * doublings)
    return _with(own, now, columns, now["dp"] // taken[works]), costs


def _options(now: Mapping[str, int], *, has_experts: bool, has_stages: bool) -> dict[str, list[int]]:
    """By field the value that it has and others that need less memory."""
    stronger = _STRONGER[_STRONGER.index(RECOMPUTATIONS[now["recompute"]]) :]
    halves = [now["microbatch"] >> k for k in range(8) if now["microbatch"] % (1 << k) == 0]
    multiples = [1 << k for k in range(now["dp"].bit_length()) if now["dp"] % (1 << k) == 0]
    eager = SCHEDULES.index("1f1b")
    return {
        "sequence_parallel": [now["sequence_parallel"], 1] if not now["sequence_parallel"] else [1],
        "zero": list(range(now["zero"], 4)),
        "recompute": [RECOMPUTATIONS.index(name) for name in stronger],
        "microbatch": halves,
        "schedule": [now["schedule"]] if now["schedule"] == eager else [now["schedule"], eager],
        "interleave": [now["interleave"]] if now["interleave"] == 1 or has_stages else [now["interleave"], 1],
        "ep": [now["ep"] * k for k in multiples] if has_experts else [now["ep"]],
        "tp": [now["tp"] * k for k in multiples],
        "pp": [now["pp"]] if has_stages else [now["pp"] * k for k in multiples],
        "cp": [now["cp"] * k for k in multiples],
    }


def _with(own: Configurations, now: Mapping[str, int], columns: Mapping[str, Numbers], dp: Numbers) -> Configurations:
    """The rows, with dp and micro-batches that keep devices and global batch."""
    batch = now["dp"] * now["microbatch"] * now["microbatches"]
    shares_all = now["zero_group"] == now["dp"]
    same = np.zeros(len(dp), dtype=np.int64)
    return Configurations(
        dp=dp,
        tp=columns["tp"],
        pp=columns["pp"],
        cp=columns["cp"],
        ep=columns["ep"],
        microbatch=columns["microbatch"],
        microbatches=batch // (dp * columns["microbatch"]),
        interleave=columns["interleave"],
        zero=columns["zero"],
        zero_group=dp if shares_all else np.gcd(now["zero_group"], dp),
        cp_kind=same + now["cp_kind"],
        schedule=columns["schedule"],
        recompute=columns["recompute"],
        sequence_parallel=(columns["sequence_parallel"] > 0) & (columns["tp"] > 1),
        overlap=own.overlap,
        precision=own.precision,
        stages=own.stages,
    )
