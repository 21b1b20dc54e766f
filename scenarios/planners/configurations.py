"""Splits in columns, a row each, so that a closed form answers for tens of thousands of them at once.

    Configurations.of([Split(tp=8, dp=2), Split(tp=4, dp=4, zero=1)])
        dp [2, 4]    tp [8, 4]    zero [0, 1]    recompute [0, 0]    ...
    configurations.split(1)                      Split(tp=4, dp=4, zero=1)

Whole numbers are columns of that name. A choice of words is a column of places in a list: `RECOMPUTATIONS[recompute]`.
What no search varies is the same in all rows: `overlap`, `precision`, and the layers of given `stages`. Where none are
given, layers that the stages of a row do not share out equally are cut as `models/stage_cut.py` says; the split of such
a row has them stage by stage, for which `layers` is the model's number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self, get_args

import numpy as np
from attrs import evolve, fields_dict, frozen

from ...errors import InvalidArgumentError, UnimplementedError
from ...graph.arrays import Flags, Numbers
from ..models.split import ContextKind, Precision, Recomputation, Split
from ..models.stage_cut import even_stages

COUNTS = ("dp", "tp", "pp", "cp", "ep", "microbatch", "microbatches", "interleave", "zero")
CONTEXT_KINDS: tuple[ContextKind, ...] = get_args(ContextKind)
RECOMPUTATIONS: tuple[Recomputation, ...] = get_args(Recomputation)
SCHEDULES = ("1f1b", "interleaved", "gpipe")
"""those that a closed form knows"""
_SAME = ("overlap", "precision", "stages", "layers")


@frozen(eq=False)
class Configurations:
    """The columns; `zero_group` is the number of dp ranks that share shards, dp itself where all do."""

    dp: Numbers
    tp: Numbers
    pp: Numbers
    cp: Numbers
    ep: Numbers
    microbatch: Numbers
    microbatches: Numbers
    interleave: Numbers
    zero: Numbers
    zero_group: Numbers
    cp_kind: Numbers
    schedule: Numbers
    recompute: Numbers
    sequence_parallel: Flags
    overlap: tuple[str, ...] = ()
    precision: Precision = "bfloat16"
    stages: tuple[int, ...] | None = None
    layers: int | None = None

    @classmethod
    def of(cls, splits: Sequence[Split]) -> Self:
        """The rows of splits; UnimplementedError for a schedule without a closed form.

        InvalidArgumentError where they differ in what is the same in all rows, or there are none.
        """
        if not splits:
            raise InvalidArgumentError("no split is given; give one or more")
        first = splits[0]
        for name in ("overlap", "precision", "stages"):
            if any(getattr(split, name) != getattr(first, name) for split in splits):
                raise InvalidArgumentError(f"splits in columns must have the same {name}; give those apart")
        if unknown := {split.schedule for split in splits} - {*SCHEDULES}:
            raise UnimplementedError(
                f"schedule={min(unknown)!r} has no closed form; use {', '.join(SCHEDULES)}, or simulate the graph"
            )
        columns: dict[str, Any] = {name: _whole([getattr(split, name) for split in splits]) for name in COUNTS}
        return cls(
            **columns,
            zero_group=_whole([split.zero_group or split.dp for split in splits]),
            cp_kind=_whole([CONTEXT_KINDS.index(split.cp_kind) for split in splits]),
            schedule=_whole([SCHEDULES.index(split.schedule) for split in splits]),
            recompute=_whole([RECOMPUTATIONS.index(split.recompute) for split in splits]),
            sequence_parallel=np.array([split.sequence_parallel for split in splits], dtype=np.bool_),
            overlap=first.overlap,
            precision=first.precision,
            stages=first.stages,
        )

    def __len__(self) -> int:
        return len(self.dp)

    @property
    def columns(self) -> Mapping[str, Numbers | Flags]:
        """The columns by name."""
        names = [name for name in fields_dict(type(self)) if name not in _SAME]
        return {name: getattr(self, name) for name in names}

    @property
    def devices(self) -> Numbers:
        """The devices of each."""
        return np.asarray(self.dp * self.tp * self.pp * self.cp)

    @property
    def global_batch(self) -> Numbers:
        """Sequences of a step of each."""
        return np.asarray(self.dp * self.microbatch * self.microbatches)

    def taken(self, rows: Numbers | Flags) -> Self:
        """Some of the rows."""
        columns: dict[str, Any] = {name: column[rows] for name, column in self.columns.items()}
        return evolve(self, **columns)

    def split(self, row: int) -> Split:
        """The split of a row."""
        counts: dict[str, Any] = {name: int(getattr(self, name)[row]) for name in COUNTS}
        group = int(self.zero_group[row])
        return Split(
            **counts,
            zero_group=group if counts["zero"] and group != counts["dp"] else None,
            cp_kind=CONTEXT_KINDS[self.cp_kind[row]],
            schedule=SCHEDULES[self.schedule[row]],
            recompute=RECOMPUTATIONS[self.recompute[row]],
            sequence_parallel=bool(self.sequence_parallel[row]),
            overlap=self.overlap,
            precision=self.precision,
            stages=self.stages or self._uneven(counts["pp"] * counts["interleave"]),
        )

    def _uneven(self, stages: int) -> tuple[int, ...] | None:
        layers = self.layers or 0
        return even_stages(layers, stages) if layers > stages and layers % stages else None


def _whole(values: Sequence[int]) -> Numbers:
    return np.array(values, dtype=np.int64)
