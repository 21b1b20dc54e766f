"""A file that is damaged, or made up: it is read as it was, or there is one error that names it."""

from __future__ import annotations

import copy
import random
from functools import cache
from io import BytesIO
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.devices.timing import Timeline
from partita.devices.timing.saved.archive import archive_bytes, read_archive
from partita.devices.timing.timeline_file import timeline_bytes, timeline_from
from partita.errors import DataLossError, InvalidArgumentError
from tests.devices.timing.saved.answers import answers, assert_equal
from tests.devices.timing.saved.examples import EXAMPLES

NAME = "'step.timeline'"
VALUES: list[object] = [
    None,
    0,
    -1,
    3,
    2**70,
    1.5,
    True,
    "x",
    "",
    "plain",
    "from:row",
    "from:device",
    "device",
    [],
    {},
    [0],
    [["a"]],
]


def read_or_refused(content: bytes) -> Timeline | None:
    """What is read; None where an error names the file and says what to do."""
    try:
        return timeline_from(content, NAME)
    except (DataLossError, InvalidArgumentError) as error:
        text = str(error)
    assert text.count(NAME) == 1, text
    return None


@cache
def saved(name: str) -> bytes:
    """The file of an example."""
    return timeline_bytes(EXAMPLES[name]())


@pytest.mark.parametrize("name", ["gpu", "loop"])
@given(st.randoms(use_true_random=False), st.integers(0, 7))
def test_a_flipped_bit_is_found(name: str, where: random.Random, bit: int) -> None:
    """Or it is where nothing depends on it, such as in a date."""
    content = bytearray(saved(name))
    content[where.randrange(len(content))] ^= 1 << bit
    read = read_or_refused(bytes(content))
    if read is not None:
        assert_equal(read, EXAMPLES[name]())


@given(st.randoms(use_true_random=False))
def test_a_file_that_was_cut_is_found(where: random.Random) -> None:
    """Wherever it ends."""
    content = saved("gpu")
    assert read_or_refused(content[: where.randrange(len(content))]) is None


def places(document: object, at: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """The ways to all values of a document, of long lists only the first."""
    ways = [at] if at else []
    if isinstance(document, dict):
        return ways + [way for key, value in document.items() for way in places(value, (*at, key))]
    if isinstance(document, list):
        return ways + [way for key, value in enumerate(document[:4]) for way in places(value, (*at, key))]
    return ways


@pytest.mark.parametrize("name", ["gpu", "loop", "representatives"])
@given(st.randoms(use_true_random=False), st.sampled_from(VALUES), st.booleans())
def test_a_document_with_another_value_is_refused_or_answers(
    name: str, where: random.Random, value: object, is_left_out: bool
) -> None:
    """No value of the JSON surfaces as an exception of Python, neither when it is read nor when it is asked."""
    document, arrays = read_archive(saved(name))
    changed = copy.deepcopy(document)
    way = where.choice(places(document))
    into: Any = changed  # Any: what JSON holds
    for key in way[:-1]:
        into = into[key]
    if is_left_out:
        del into[way[-1]]
    else:
        into[way[-1]] = value
    read = read_or_refused(archive_bytes(changed, arrays))
    assert read is None or answers(read)


@pytest.mark.parametrize("name", ["gpu", "loop", "representatives"])
@given(st.data())
def test_a_column_with_another_number_is_refused_or_answers(name: str, data: st.DataObject) -> None:
    """Numbers that point nowhere, causes in a circle, ends before starts: none gets further than the reader."""
    document, arrays = read_archive(saved(name))
    column = data.draw(st.sampled_from(sorted(name for name, values in arrays.items() if len(values))))
    values = arrays[column].copy()
    number = data.draw(st.sampled_from([0, 1, -1, 7, 10**6, 2**62, -(2**63)]))
    values[data.draw(st.integers(0, len(values) - 1))] = number
    read = read_or_refused(archive_bytes(document, {**arrays, column: values}))
    assert read is None or answers(read)


def test_columns_of_other_lengths_are_refused() -> None:
    """One by one."""
    document, arrays = read_archive(saved("gpu"))
    for name, values in arrays.items():
        if name != "link_rates":  # of which more than are used do no harm
            with pytest.raises(DataLossError, match=r"column .* has .*numbers"):
                timeline_from(archive_bytes(document, {**arrays, name: values[:-1]}), NAME)
        with pytest.raises(DataLossError, match="has no array"):
            timeline_from(archive_bytes(document, {key: value for key, value in arrays.items() if key != name}), NAME)


def test_events_that_cause_each_other_are_refused() -> None:
    """A critical path would have no end."""
    document, arrays = read_archive(saved("gpu"))
    causes = arrays["cause"].copy()
    causes[:2] = 1, -1  # counted from the row: event 0 by event 1, and that by event 0
    with pytest.raises(DataLossError, match="causes of themselves"):
        timeline_from(archive_bytes(document, {**arrays, "cause": causes}), NAME)


def test_another_format_says_what_to_do() -> None:
    """As does what is no timeline at all."""
    document, arrays = read_archive(saved("gpu"))
    with pytest.raises(InvalidArgumentError, match="format 2, and this version of Partita reads 1"):
        timeline_from(archive_bytes({**document, "format": 2}, arrays), NAME)
    with pytest.raises(DataLossError, match="not a zip file"):
        timeline_from(b"{}", NAME)


def bomb(entries: dict[str, bytes]) -> bytes:
    """A zip."""
    into = BytesIO()
    with ZipFile(into, "w", ZIP_DEFLATED) as file:
        for name, content in entries.items():
            file.writestr(name, content)
    return into.getvalue()


def header(shape: str, descr: str = "|u1") -> bytes:
    """The begin of a column, which says what it likes."""
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


@pytest.mark.parametrize(
    ("column", "why"),
    [
        (header("(1000000000000,)"), "1,000,000,000,000 numbers"),
        (header("(4,)") + b"123", "131 bytes for 4 numbers"),
        (header("(2, 2)") + b"1234", "header"),
        (header("(-4,)"), "header"),
        (header("(1,)", "|O") + b"12345678", "header"),
        (header("(1,)", ">u8") + b"12345678", "header"),
        (header("(1,)", "[('a', '<i8')]") + b"12345678", "header"),
        (header("((" * 20), "header"),
        (b"\x80\x04K\x01.", "header"),
    ],
)
def test_a_column_is_no_more_than_it_has(column: bytes, why: str) -> None:
    """Sizes are those of the bytes that are there, types are numbers, and nothing is unpickled."""
    with pytest.raises(DataLossError, match=why):
        read_archive(bomb({"document.json": b"{}", "x.npy": column}), NAME)


def test_what_would_fill_the_memory_is_refused() -> None:
    """A megabyte of zip with a gigabyte of zeros in it, and one that only says so."""
    rows = 1 << 26
    with pytest.raises(DataLossError, match="would need 536,870,914 bytes of memory"):
        read_archive(bomb({"document.json": b"{}", "x.npy": header(f"({rows},)") + bytes(rows)}), NAME)
    with pytest.raises(InvalidArgumentError, match="more than a file may need"):
        archive_bytes({}, {"x": np.zeros(rows, np.int64)})


@pytest.mark.parametrize(
    "entries",
    [
        {"x.npy": b""},
        {"document.json": b"[]"},
        {"document.json": b"{", "x.npy": b""},
        {"document.json": b'{"a": NaN}'},
        {"document.json": b"[" * 100_000},
        {"document.json": b"\xff"},
        {"document.json": b"1" * 5000},
        {"document.json": b"{}", "x.py": b""},
    ],
)
def test_entries_that_do_not_belong_there_are_refused(entries: dict[str, bytes]) -> None:
    """No document, one that is no JSON object, files of other names."""
    with pytest.raises(DataLossError, match=NAME):
        read_archive(bomb(entries), NAME)
