"""A split as text: "tp=8,pp=4,sequence_parallel,overlap=tp+dp,stages=9+11" becomes the fields of `Split`."""

from __future__ import annotations

from collections.abc import Callable, Set as AbstractSet
from typing import Any

from ...errors import InvalidArgumentError
from ...graph.suggestions import suggestion

_WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def _texts(value: str) -> tuple[str, ...]:
    return tuple(part for part in value.split("+") if part)


_READERS: dict[str, Callable[[str], object]] = {
    "cp_kind": str,
    "schedule": str,
    "recompute": str,
    "precision": str,
    "overlap": _texts,
    "stages": lambda value: tuple(int(part) for part in value.split("+")),
    "sequence_parallel": lambda value: _WORDS[value.lower()],
}
"""by field; those that are not here are whole numbers"""


def split_fields(text: str, names: AbstractSet[str]) -> tuple[dict[str, Any], int | None]:  # Any: fields differ in type
    """The given fields by name, and the global batch if it is given; raises InvalidArgumentError as `Split.parse`."""
    given: dict[str, Any] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if name not in names | {"batch"}:
            raise InvalidArgumentError(f"split {text!r} has no field {name!r}{suggestion(name, sorted(names))}")
        if name in given:
            raise InvalidArgumentError(f"split {text!r} gives {name} twice; leave one out")
        given[name] = _value(name, value if equals or name != "sequence_parallel" else "yes")
    batch = given.pop("batch", None)
    if batch is not None and "microbatches" in given:
        raise InvalidArgumentError(f"split {text!r} gives batch and microbatches; one follows from the other")
    return given, batch


def _value(name: str, value: str) -> object:
    try:
        return _READERS.get(name, int)(value)
    except (ValueError, KeyError):
        kind = {"stages": "list of numbers, 9+11", "sequence_parallel": "yes or no"}.get(name, "whole number")
        raise InvalidArgumentError(f"split: {name}={value!r} is no {kind}; give one") from None
