"""The events of a timeline as a table of pandas or Arrow, one row an event, in their order.

    device          node   op      kind       start_ns   end_ns   ...   low_ns   high_ns   step
    /device:CPU:0   a      Neg     compute    0          4000           <NA>     <NA>      0

Columns are those of `TimelineEvent`. Texts are categories, in order of first appearance; numbers are int64, bounds that
nobody knows are missing. Neither package is needed otherwise: each is imported when its table is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InvalidArgumentError, UnimplementedError
from .events import KINDS, UNKNOWN_NS, TextColumn, TimelineEvent
from .saved.coding import TextNumbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...graph.arrays import Flags, Numbers
    from .events import Events

_BOUNDS = ("low_ns", "high_ns")


def pandas_of(events: Events) -> Any:  # Any: a `pandas.DataFrame`, whose types a checker need not have
    """The table; UnimplementedError without pandas, InvalidArgumentError for numbers beyond 64 bits."""
    pandas = _package("pandas")
    columns: dict[str, object] = {}
    for name, numbers, texts in _columns(events):
        if texts is not None:
            categories = pandas.Index(texts, dtype=object)  # as texts of Arrow would not take half a surrogate pair
            columns[name] = pandas.Categorical.from_codes(numbers, categories)
        elif name in _BOUNDS:
            columns[name] = pandas.arrays.IntegerArray(numbers.copy(), _is_unknown(numbers))
        else:
            columns[name] = numbers
    return pandas.DataFrame(columns)


def arrow_of(events: Events) -> Any:  # Any: a `pyarrow.Table`, likewise
    """The table; UnimplementedError without pyarrow, InvalidArgumentError for numbers beyond 64 bits."""
    arrow = _package("pyarrow")
    columns: dict[str, object] = {}
    for name, numbers, texts in _columns(events):
        if texts is not None:
            known = [text.encode(errors="replace").decode() for text in texts]
            codes = arrow.array(numbers.astype(np.int32))
            columns[name] = arrow.DictionaryArray.from_arrays(codes, arrow.array(known, arrow.string()))
        else:
            columns[name] = arrow.array(numbers, mask=_is_unknown(numbers) if name in _BOUNDS else None)
    return arrow.table(columns)


def _columns(events: Events) -> Iterator[tuple[str, Numbers, Sequence[str] | None]]:
    """Name, numbers, and the texts that they number, if they do, of every column."""
    for name in TimelineEvent._fields:
        column = events.steps if name == "step" else getattr(events, name)
        if isinstance(column, TextColumn):
            texts = TextNumbers()
            yield name, texts.of(column), texts.texts
        elif name == "kind":
            yield name, column.astype(np.int64), KINDS
        elif column.dtype == object:
            raise InvalidArgumentError(f"column {name!r} has numbers beyond 64 bits, which a table has no type for")
        else:
            yield name, column, None


def _is_unknown(numbers: Numbers) -> Flags:
    return np.equal(numbers, UNKNOWN_NS)


def _package(name: str) -> Any:  # Any: a module
    try:
        return import_module(name)
    except ImportError:
        raise UnimplementedError(f"the table is one of {name}, which is not installed: pip install {name}") from None
