"""attrs classes, dataclasses and named tuples <-> objects of JSON, strictly.

    to_document(Window(Fraction(3, 2), 0, None))       {"factor": "3/2", "from_ns": 0, "to_ns": None}
    from_document({"factor": "3/2"}, Window, "x.json")        Window(Fraction(3, 2))
    from_document({"factor": 1.5, "n": 1}, Window, "x.json")  InvalidArgumentError: x.json: ...

Nothing is converted silently: a text is no number, a number no text, true no 1. Unknown keys are refused.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import cache
from math import isfinite
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

from ..errors import InvalidArgumentError, PartitaError
from .tables import naming

if TYPE_CHECKING:
    from collections.abc import Callable

    from cattrs import Converter

T = TypeVar("T")
_FRACTION = re.compile(r"-?[0-9]{1,400}(/[1-9][0-9]{0,400})?")


def to_document(value: object) -> Any:  # Any: what JSON holds
    """A value as JSON holds it; what a number of JSON cannot be, such as an infinite one, is a text."""
    return _converter().unstructure(value)


def from_document(document: object, cls: type[T], where: str) -> T:
    """The value of a class that a document holds.

    Raises InvalidArgumentError, whose text begins with `where`, for a document of anything else.
    """
    if not isinstance(document, dict):
        raise InvalidArgumentError(f"{where}: {str(document)[:40]!r} must be an object")
    return structured(_converter(), document, cls, where, most=3)


def structured(converter: Converter, document: object, cls: type[T], where: str, most: int | None = None) -> T:
    """What a converter of cattrs makes of a document.

    Raises InvalidArgumentError, whose text begins with `where`, with the first error of this package, or all others, at
    most so many.
    """
    import cattrs  # late: importing it takes longer than the rest of devices/

    try:
        with naming(where):
            return converter.structure(document, cls)
    except cattrs.BaseValidationError as group:
        ours = _first_of_ours(group)
        text = ours.message if ours else "; ".join(cattrs.transform_error(group, path="it")[:most])
        raise InvalidArgumentError(f"{where}: {text}") from None


def _first_of_ours(group: BaseExceptionGroup[BaseException]) -> PartitaError | None:
    ours = group.subgroup(PartitaError)
    while isinstance(ours, BaseExceptionGroup):
        ours = ours.exceptions[0]  # type: ignore[assignment]  # a subgroup of this type holds nothing else
    return ours


@cache
def _converter() -> Converter:
    import cattrs  # late, as above

    converter = cattrs.Converter(forbid_extra_keys=True)
    for cls in (int, str, bool):
        converter.register_structure_hook(cls, _of_type)
    converter.register_structure_hook(float, _float)
    converter.register_unstructure_hook(float, lambda value: value if isfinite(value) else str(value))
    converter.register_structure_hook(Fraction, _fraction)
    converter.register_unstructure_hook(Fraction, str)
    converter.register_structure_hook_factory(_is_named_tuple, lambda cls: _named_tuple(converter, cls))
    converter.register_unstructure_hook_factory(_is_named_tuple, lambda cls: _items(converter))
    return converter


def _of_type(value: object, cls: type[T]) -> T:
    if type(value) is not cls:
        raise InvalidArgumentError(f"{str(value)[:40]!r} must be of type {cls.__name__}")
    return value


def _float(value: object, cls: type[float]) -> float:
    if type(value) in (int, float):
        return float(value)  # type: ignore[arg-type]  # mypy does not narrow by `in`
    if value in ("inf", "-inf", "nan"):
        return float(str(value))
    raise InvalidArgumentError(f"{str(value)[:40]!r} must be a number")


def _fraction(value: object, cls: type[Fraction]) -> Fraction:
    if not isinstance(value, str) or not _FRACTION.fullmatch(value):
        raise InvalidArgumentError(f"{str(value)[:40]!r} must be a fraction such as '3/2'")
    return Fraction(value)


def _is_named_tuple(cls: object) -> bool:
    return isinstance(cls, type) and issubclass(cls, tuple) and hasattr(cls, "_fields")


def _named_tuple(converter: Converter, cls: Any) -> Callable[[object, object], object]:  # Any: it has _make
    """cattrs does not look up the types of its fields where they are written as texts."""
    types = list(get_type_hints(cls).values())

    def structure(value: object, _: object) -> object:
        if not isinstance(value, list) or len(value) != len(types):
            raise InvalidArgumentError(f"{str(value)[:40]!r} must be a list of {len(types)}: {', '.join(cls._fields)}")
        return cls._make(converter.structure(item, of) for item, of in zip(value, types, strict=True))

    return structure


def _items(converter: Converter) -> Callable[[Any], list[object]]:  # Any: any named tuple
    return lambda value: [converter.unstructure(item) for item in value]
