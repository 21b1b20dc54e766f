"""The keys of slices sort by name, rank and extents."""

from __future__ import annotations

from hypothesis import given, strategies as st

from partita.graph.formats.slice_keys import decode_name, encode_name, slice_key
from partita.graph.ops.files.tensor_slices import TensorSlice, parse_slice

LARGE = (1 << 62) - 1
EXTENTS = st.none() | st.tuples(st.integers(0, LARGE), st.integers(1, LARGE))
SLICES = st.lists(EXTENTS, max_size=4).map(lambda extents: TensorSlice(tuple(extents)))


@given(st.text(max_size=5), st.text(max_size=5), SLICES, SLICES)
def test_keys_sort_by_name_rank_and_extents(first: str, second: str, a: TensorSlice, b: TensorSlice) -> None:
    """A whole dimension counts as start 0 and length -1."""

    def order(name: str, part: TensorSlice) -> tuple[bytes, int, list[tuple[int, int]]]:
        return encode_name(name), len(part.extents), [extent or (0, -1) for extent in part.extents]

    before = order(first, a) < order(second, b)
    assert (slice_key(first, a) < slice_key(second, b)) == before


def test_keys_are_those_of_tensorflow() -> None:
    """As TensorFlow 2.21 wrote them."""
    assert slice_key("w", parse_slice("3,3:-")) == b"\0w\0\1\1\2\x83\x83\x80\x7f"
    name = decode_name(b"\xff\0a")
    assert slice_key(name, parse_slice("64,8192")) == b"\0\xff\0\0\xffa\0\1\1\1\xc0\x40\xe0\x20\0"
