"""Columns in an archive: what they are written as, and that they come back."""

from __future__ import annotations

import json

import numpy as np
import pytest
from attrs import frozen
from hypothesis import given, strategies as st

from partita.devices.documents import from_document
from partita.devices.timing import Timeline
from partita.devices.timing.events import column_of
from partita.devices.timing.saved.archive import Column, archive_bytes, read_archive
from partita.devices.timing.saved.coding import ColumnDocument, ColumnReader, ColumnWriter, TextNumbers
from partita.devices.timing.saved.columns import event_columns, has_circle
from tests.devices.timing.saved.drawn import timelines

WIDE = st.integers(-(2**63), 2**63 - 1) | st.integers(-300, 300)


@given(st.lists(WIDE), st.lists(st.floats(allow_nan=False)))
def test_arrays_come_back(numbers: list[int], rates: list[float]) -> None:
    """As int64 and float64, whatever they were narrowed to, and the document with them."""
    arrays: dict[str, Column] = {"0/x": np.array(numbers, np.int64), "rates": np.array(rates, np.float64)}
    document, read = read_archive(archive_bytes({"a": [1, None, "\ud800"]}, arrays))
    assert document == {"a": [1, None, "\ud800"]}
    assert {name: (str(array.dtype), array.tolist()) for name, array in read.items()} == {
        "0/x": ("int64", numbers),
        "rates": ("float64", rates),
    }


@frozen
class Described:
    """Columns in a document."""

    of: dict[str, ColumnDocument]


@given(st.lists(st.tuples(WIDE, WIDE)))
def test_codings_come_back(rows: list[tuple[int, int]]) -> None:
    """Plain, as differences, and counted from another column or from the row, where 64 bits suffice for it or not."""
    first, second = (np.array([row[at] for row in rows], np.int64) for at in (0, 1))
    writer = ColumnWriter("0/")
    writer.add_differences("first", first)
    writer.add("second", second, ("first", first))
    writer.add("row", second, ("row", np.arange(len(rows))))
    writer.add("large", np.array([2**64 + row[0] for row in rows], object))
    documents = from_document(json.loads(json.dumps({"of": writer.descriptions})), Described, "x").of
    reader = ColumnReader(documents, writer.arrays, len(rows), "x")
    assert reader.read("first").tolist() == first.tolist()
    assert reader.read("second").tolist() == reader.read("row").tolist() == second.tolist()
    assert reader.read("large").tolist() == [2**64 + row[0] for row in rows]


def test_texts_are_numbered_as_they_come() -> None:
    """Equal ones have one number, and those of a second column come after those of the first."""
    texts = TextNumbers()
    assert texts.of(column_of(["b", "a", "b"])).tolist() == [0, 1, 0]
    assert texts.of(column_of(["c", "a"])).tolist() == [2, 1]
    assert texts.texts == ["b", "a", "c"]


@given(timelines())
def test_a_description_names_the_arrays_that_there_are(timeline: Timeline) -> None:
    """With the prefix of a page that has several runs."""
    description, arrays = event_columns(timeline.columns, "1/")
    columns = description["columns"]
    assert isinstance(columns, dict)
    named = [about["array"] for about in columns.values() if "array" in about]
    assert sorted(named) == sorted(arrays)
    assert all(name.startswith("1/") for name in named)


@pytest.mark.parametrize(
    ("causes", "expected"), [([-1, 0, 1, 1], False), ([1, 0], True), ([0], True), ([2, -1, 1], False)]
)
def test_circles_of_causes(causes: list[int], expected: bool) -> None:
    """An event may be written down before its cause, but not be it."""
    assert has_circle(np.array(causes, np.int64)) is expected
