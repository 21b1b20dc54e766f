"""DecodeCompressed undoes Python's compressors."""

from __future__ import annotations

import gzip
import zlib

import pytest
from hypothesis import given, strategies as st

from partita.devices.kernels.strings.each_string import strings
from partita.errors import DataLossError, InvalidArgumentError, UnimplementedError
from tests.devices.kernels.harness import check_shapes


def decode(values: list[bytes], kind: str) -> list[bytes]:
    """The decoded strings."""
    decoded: list[bytes] = check_shapes(
        "DecodeCompressed", strings(values, (len(values),)), compression_type=kind
    ).tolist()
    return decoded


@given(st.lists(st.binary(max_size=50), max_size=3))
def test_decoding_undoes_compressing(values: list[bytes]) -> None:
    """In each format."""
    assert decode([zlib.compress(value) for value in values], "ZLIB") == values
    assert decode([gzip.compress(value) for value in values], "GZIP") == values
    assert decode(values, "") == values


def test_what_is_behind_a_stream() -> None:
    """Ignored behind a zlib stream; a further gzip member; the checksum may lack. TensorFlow 2.21 gives these."""
    assert decode([zlib.compress(b"ab") + b"zz", zlib.compress(b"ab")[:-4], b""], "ZLIB") == [b"ab", b"ab", b""]
    assert decode([gzip.compress(b"ab") + gzip.compress(b"c"), gzip.compress(b"ab")[:-4]], "GZIP") == [b"abc", b"ab"]


def test_damage_is_an_error() -> None:
    """In TensorFlow's words; so is a format that is not known."""
    for kind in ("ZLIB", "GZIP"):
        with pytest.raises(DataLossError, match=r"inflate\(\) failed with error -3: incorrect header check"):
            decode([b"abc"], kind)
    with pytest.raises(InvalidArgumentError, match="Only ZLIB, ZSTD, GZIP or NONE are supported compressions"):
        decode([], "LZ4")
    with pytest.raises(UnimplementedError, match="Python has no decoder of Zstandard"):
        decode([], "ZSTD")
