"""What a caller wants searched -> the axes, and the values of those that are fixed.

    asked(search="tp,zero", split="tp=8,zero=1+3,overlap=dp")
        searched  {"tp", "zero"}         the others have their `DEFAULTS`
        given     {"tp": (8,), "zero": (1, 3)}
        same      {"overlap": ("dp",)}   of all configurations

Values are numbers, those of a choice of words its places in the lists of `configurations`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from attrs import frozen

from ....errors import InvalidArgumentError
from ....graph.suggestions import meant, suggestion
from ...models.split import Split
from ...models.split_text import field_texts, read_field
from ..configurations import CONTEXT_KINDS, RECOMPUTATIONS, SCHEDULES

CHOICES: Mapping[str, Sequence[object]] = {
    "cp_kind": CONTEXT_KINDS,
    "schedule": SCHEDULES,
    "recompute": RECOMPUTATIONS,
    "sequence_parallel": (False, True),
    "zero": (0, 1, 2, 3),
}
DEFAULTS: Mapping[str, tuple[int, ...]] = {
    **dict.fromkeys(("tp", "pp", "cp", "ep", "microbatch", "interleave"), (1,)),
    "cp_kind": (CONTEXT_KINDS.index("ring"),),
    "schedule": (SCHEDULES.index("1f1b"), SCHEDULES.index("interleaved")),
    "sequence_parallel": (0,),
    "recompute": (RECOMPUTATIONS.index("none"),),
    "zero": (0,),
}
"""of an axis that is not searched; dp is what the others leave, a zero_group all of dp"""
AXES = (
    *("tp", "pp", "dp", "ep", "cp", "cp_kind", "microbatch", "interleave", "schedule"),
    *("sequence_parallel", "recompute", "zero", "zero_group"),
)
SAME = ("overlap", "precision", "stages")
"""what a split has and no search varies"""
SplitValues: TypeAlias = "str | Mapping[str, Any]"  # Any: a number, a word, a flag, or several of them
"""values by axis: "tp=8,zero=1+3", or {"tp": 8, "zero": (1, 3)}"""


@frozen
class AskedAxes:
    """What to search. `given` are the values of fixed axes, in the order in which they were given."""

    searched: frozenset[str]
    given: Mapping[str, tuple[int, ...]]
    same: Mapping[str, Any]

    def is_searched(self, axis: str) -> bool:
        """Whether the values of an axis are for the search to find."""
        return axis in self.searched and axis not in self.given

    def values(self, axis: str) -> tuple[int, ...] | None:
        """The values of an axis that is not searched, where it has values of its own."""
        if axis in self.given:
            return self.given[axis]
        return None if axis in self.searched else DEFAULTS.get(axis)


def asked(search: str | Iterable[str] | None, split: SplitValues | None) -> AskedAxes:
    """What to search; InvalidArgumentError, with the nearest name, for a name or a value that does not exist."""
    names = AXES if search is None else _names(search)
    given: dict[str, tuple[int, ...]] = {}
    same: dict[str, Any] = {}
    for name, value in _given(split).items():
        if name in SAME:
            same[name] = tuple(value) if isinstance(value, list) else value
        else:
            several = value if isinstance(value, Sequence) else (value,)
            given[name] = tuple(dict.fromkeys(_number(name, one) for one in several))
    stages = same.get("stages")
    checked = Split(**same, pp=len(stages) if stages else 1)
    return AskedAxes(frozenset(names), given, {name: getattr(checked, name) for name in same})


def values_text(values: Mapping[str, Iterable[int]]) -> str:
    """Values by axis as a text: "tp=8, recompute=none+full"."""
    return ", ".join(f"{axis}={'+'.join(_word(axis, it) for it in several)}" for axis, several in values.items())


def _word(axis: str, value: int) -> str:
    return str(CHOICES[axis][value] if axis in CHOICES else value)


def _names(search: str | Iterable[str]) -> tuple[str, ...]:
    names = tuple(filter(None, map(str.strip, search.split(",")))) if isinstance(search, str) else tuple(search)
    for name in names:
        if name not in AXES:
            raise InvalidArgumentError(f"search: there is no axis {name!r}{suggestion(name, AXES)}")
    return names


def _given(split: SplitValues | None) -> dict[str, Any]:  # Any: values of several types
    """The values by name, texts read."""
    given: dict[str, Any] = {}
    given |= field_texts(split, {*AXES, *SAME, *_FOLLOW}) if isinstance(split, str) else split or {}
    for name, value in given.items():
        if name in _FOLLOW:
            raise InvalidArgumentError(f"split: {name} follows from global_batch / (dp * microbatch); leave it out")
        if name not in AXES and name not in SAME:
            raise InvalidArgumentError(f"split: there is no axis {name!r}{suggestion(name, (*AXES, *SAME))}")
        if isinstance(value, str):
            given[name] = read_field(name, value) if name in SAME else _several(name, value)
    return given


def _several(name: str, text: str) -> list[object]:
    return [read_field(name, part) for part in text.split("+")]


_FOLLOW = ("microbatches", "batch")


def _number(axis: str, value: Any) -> int:  # Any: as a caller gives it
    choices = CHOICES.get(axis)
    if choices is None:
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise InvalidArgumentError(f"split: {axis}={value!r} is no positive number; give 1 or more")
        return value
    if value not in choices:
        hint = meant(value, list(map(str, choices))) if isinstance(value, str) else ""
        raise InvalidArgumentError(f"split: {axis}={value!r} is none of {', '.join(map(str, choices))}{hint}")
    return choices.index(value)
