"""A split as text: "tp=8,pp=4,sequence_parallel,overlap=tp+dp,stages=9+11" becomes the fields of `Split`, and back."""

from __future__ import annotations

from collections.abc import Callable, Set as AbstractSet
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from ...errors import InvalidArgumentError
from ...graph.suggestions import suggestion

if TYPE_CHECKING:
    from .split import Split

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
    texts = field_texts(text, names | {"batch"})
    given: dict[str, Any] = {name: read_field(name, value) for name, value in texts.items()}
    batch = given.pop("batch", None)
    if batch is not None and "microbatches" in given:
        raise InvalidArgumentError(f"split {text!r} gives batch and microbatches; one follows from the other")
    return given, batch


def field_texts(text: str, names: AbstractSet[str]) -> dict[str, str]:
    """What is given for each field; InvalidArgumentError for a field of another name, and for one given twice."""
    given: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if name not in names:
            raise InvalidArgumentError(f"split {text!r} has no field {name!r}{suggestion(name, sorted(names))}")
        if name in given:
            raise InvalidArgumentError(f"split {text!r} gives {name} twice; leave one out")
        given[name] = value if equals or name != "sequence_parallel" else "yes"
    return given


def read_field(name: str, value: str) -> object:
    """The value of a text; InvalidArgumentError for one of another type."""
    try:
        return _READERS.get(name, int)(value)
    except (ValueError, KeyError):
        kind = {"stages": "list of numbers, 9+11", "sequence_parallel": "yes or no"}.get(name, "whole number")
        raise InvalidArgumentError(f"split: {name}={value!r} is no {kind}; give one") from None


def split_text(split: Split) -> str:
    """The text that `Split.parse` reads; fields that have their default are left out."""
    texts = []
    for it in fields(split):
        value = getattr(split, it.name)
        if value == it.default or (it.name == "schedule" and value == usual_schedule(split.interleave)):
            continue
        texts.append(it.name if value is True else f"{it.name}={_text(value)}")
    return ",".join(texts)


def usual_schedule(interleave: int) -> str:
    """The schedule of a split that names none."""
    return "interleaved" if interleave > 1 else "1f1b"


def _text(value: object) -> str:
    return "+".join(map(str, value)) if isinstance(value, tuple) else str(value)
