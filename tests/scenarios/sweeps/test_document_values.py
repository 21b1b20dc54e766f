"""Values of JSON documents by paths, and what their columns are called."""

from __future__ import annotations

import pytest

from partita.errors import InvalidArgumentError, NotFoundError
from partita.scenarios.sweeps.document_values import named_paths, value_at

DOCUMENT = {"ns": 7, "none": None, "memory": [{"peak": 3, "at": "x"}, {"peak": 5.5, "at": "y"}], "no": [], "t": "text"}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("ns", 7),
        ("none", None),
        ("none.below", None),
        ("memory.0.peak", 3),
        ("memory.1.at", "y"),
        ("memory.*.peak", 5.5),
        ("no.*.peak", None),
        ("t", "text"),
    ],
)
def test_a_path_leads_to_a_value(path: str, value: object) -> None:
    """Keys, places, and * for the largest of a list."""
    assert value_at(DOCUMENT, path) == value


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("nss", "there is no 'nss'; did you mean 'ns'"),
        ("memory.2.peak", "'2' is no place in a list of 2"),
        ("memory.peak", "'peak' is no place in a list of 2; write \\* for the largest"),
        ("ns.x", "there is nothing below 7; leave 'x' out"),
    ],
)
def test_a_path_that_leads_nowhere(path: str, words: str) -> None:
    """With the nearest key."""
    with pytest.raises(NotFoundError, match=words):
        value_at(DOCUMENT, path)


@pytest.mark.parametrize(
    ("path", "words"),
    [("memory.0", "an object with peak, at"), ("memory", "is a list"), ("memory.*.at", "none is the largest")],
)
def test_a_path_to_no_single_value(path: str, words: str) -> None:
    """Of an object, a list, or several texts."""
    with pytest.raises(InvalidArgumentError, match=words):
        value_at(DOCUMENT, path)


def test_columns_have_the_last_key_of_their_path() -> None:
    """The whole path where that is an axis, or another column."""
    paths = ["ns", "memory.*.peak", "memory.0.peak", "plans.0.batch", "0"]
    assert named_paths(paths, ["batch"]) == {
        "ns": "ns",
        "peak": "memory.*.peak",
        "memory.0.peak": "memory.0.peak",
        "plans.0.batch": "plans.0.batch",
        "0": "0",
    }
