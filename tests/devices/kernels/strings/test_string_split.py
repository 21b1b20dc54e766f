"""Kernels that split strings into tokens."""

from __future__ import annotations

from hypothesis import given, strategies as st

from tests.devices.kernels.harness import check_shapes, run
from tests.devices.kernels.random_arrays import texts
from tests.devices.kernels.strings.text_tensors import scalar


@given(
    st.lists(st.text("ab ,", max_size=8), min_size=1, max_size=4), st.sampled_from(["", ",", "ab"]), st.integers(-1, 0)
)
def test_splitting_is_pythons(lines: list[str], separator: str, most: int) -> None:
    x = texts(*(line.encode() for line in lines))
    indices, tokens, shape = check_shapes("StringSplitV2", x, scalar(separator.encode()), maxsplit=most)
    expected = [[line] if most == 0 else line.split(separator or None) for line in lines]
    assert tokens.tolist() == [token.encode() for row in expected for token in row]
    assert indices.tolist() == [[i, k] for i, row in enumerate(expected) for k in range(len(row))]
    assert shape.tolist() == [len(lines), max(len(row) for row in expected)]


def test_split_keeps_the_rest_after_the_last_allowed_split() -> None:
    assert run("StringSplitV2", texts(b"a,b,c"), scalar(b","), maxsplit=1)[1].tolist() == [b"a", b"b,c"]
    assert run("StringSplitV2", texts(b" a  b c "), scalar(b""), maxsplit=1)[1].tolist() == [b"a", b"b c "]
    assert run("StringSplitV2", texts(b"a", b"a b", b""), scalar(b""), maxsplit=1)[1].tolist() == [
        b"a",
        b"",
        b"a",
        b"b",
    ]
    assert run("StringSplit", texts(b"a,b;c", b""), scalar(b",;"))[1].tolist() == [b"a", b"b", b"c"]
    assert run("StringSplit", texts(b"a,,b"), scalar(b","), skip_empty=False)[1].tolist() == [b"a", b"", b"b"]
    assert run("StringSplit", texts(b"ab"), scalar(b""))[1].tolist() == [b"a", b"b"]
