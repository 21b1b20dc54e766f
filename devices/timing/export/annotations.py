"""Texts and arguments in a trace for Perfetto: every text is written once, and referred to by a number from 1.

{"op": "MatMul", "bytes": 80}    debug_annotations {name_iid: 1, string_value_iid: 1} {name_iid: 2, int_value: 80}
                                 interned_data {debug_annotation_names {iid: 1, text: "op"} {iid: 2, text: "bytes"}
                                                debug_annotation_string_values {iid: 1, text: "MatMul"}}
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ....graph.protos import DebugAnnotation, InternedData, InternedText
from .arguments import TraceArgument
from .utf8 import valid


class Texts:
    """The texts of one sequence of packets. Each method returns the number of a text, a new one at the first call."""

    def __init__(self) -> None:
        self._events: dict[str, int] = {}
        self._categories: dict[str, int] = {}
        self._names: dict[str, int] = {}
        self._values: dict[str, int] = {}
        self._made: dict[tuple[str, str | int], DebugAnnotation] = {}

    def event(self, name: str) -> int:
        """The number of the name of an event."""
        return self._events.setdefault(name, len(self._events) + 1)

    def category(self, name: str) -> int:
        """The number of a category of events."""
        return self._categories.setdefault(name, len(self._categories) + 1)

    def arguments(self, told: Mapping[str, TraceArgument]) -> Iterator[DebugAnnotation]:
        """Arguments by name as annotations."""
        return (self._argument(name, value) for name, value in told.items())

    def _argument(self, name: str, value: TraceArgument) -> DebugAnnotation:
        """Texts and numbers are made once, since most ops of a graph are like others."""
        if not isinstance(value, str | int):
            return self._named(name, value)
        key = name, value
        if key not in self._made:
            self._made[key] = self._named(name, value)
        return self._made[key]

    def _named(self, name: str, value: TraceArgument) -> DebugAnnotation:
        annotation = self._annotation(value)
        annotation.name_iid = self._names.setdefault(name, len(self._names) + 1)
        return annotation

    def _annotation(self, value: TraceArgument) -> DebugAnnotation:
        if isinstance(value, str):
            return DebugAnnotation(string_value_iid=self._values.setdefault(value, len(self._values) + 1))
        if isinstance(value, int):
            return _of_integer(value)
        if isinstance(value, Mapping):
            return DebugAnnotation(dict_entries=self.arguments(value))
        return DebugAnnotation(array_values=map(self._annotation, value))

    def interned(self) -> InternedData:
        """All texts so far."""
        return InternedData(
            event_categories=_numbered(self._categories),
            event_names=_numbered(self._events),
            debug_annotation_names=_numbered(self._names),
            debug_annotation_string_values=_numbered(self._values),
        )


def _of_integer(value: int) -> DebugAnnotation:
    """As a number, or, where it does not fit into 64 bits, as text."""
    bits = value.bit_length()
    if bits < 64:
        return DebugAnnotation(int_value=value)
    return DebugAnnotation(uint_value=value) if bits == 64 and value > 0 else DebugAnnotation(string_value=str(value))


def _numbered(numbers: Mapping[str, int]) -> Iterator[InternedText]:
    return (InternedText(iid=number, text=valid(text)) for text, number in numbers.items())
