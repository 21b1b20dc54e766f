"""Files of saved datasets."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from partita.errors import DataLossError
from partita.graph.dtypes import DataType
from partita.graph.formats import snappy
from partita.graph.formats.snapshot_files import Metadata, ShardWriter, records_of


@given(st.text(), st.lists(st.sampled_from(sorted(DataType))), st.integers(0, 2**40), st.booleans())
def test_metadata_is_read_as_it_was_written(run: str, types: list[DataType], count: int, is_final: bool) -> None:
    """All of it."""
    metadata = Metadata(run, tuple(types), count, is_final)
    assert Metadata.parse(metadata.serialised()) == metadata


def test_metadata_of_tensorflow_is_read() -> None:
    """Which has the time as well."""
    message = bytes.fromhex(
        "1213383936383338313435313736303138303238301 8fbe7c0f9db9e980320022a050907010a073003c03e01".replace(" ", "")
    )
    types = (DataType.INT64, DataType.STRING, DataType.FLOAT, DataType.BOOL, DataType.STRING)
    assert Metadata.parse(message) == Metadata("8968381451760180280", types, 3, is_final=True)


@pytest.mark.parametrize("compression", [b"", b"GZIP", b"SNAPPY"])
def test_records_are_read_as_they_were_written(compression: bytes, tmp_path: Path) -> None:
    """Also those that need several writes."""
    writer = ShardWriter(tmp_path / "0", compression)
    records = [bytes([k]) * k * 1000 for k in range(40)]
    for first in range(0, 40, 2):
        writer.write(records[first : first + 2])
    writer.close()
    assert records_of(tmp_path / "0", compression) == records


def test_a_file_of_tensorflow_is_read(tmp_path: Path) -> None:
    """One that its compressor has made: elements of two components, 1 and 1, 3 and 3."""
    text = (
        "000000387804 0e00090128c5e5693f0809120022080109111000a0bddf54be1e0000030d3c1011e144e90e0d0c195a2c0300000000"
        "00000011e144e9"
    )
    (tmp_path / "00000000.snapshot").write_bytes(bytes.fromhex(text.replace(" ", "")))
    expected = [b"\x08\x09\x12\x00\x22\x08" + k.to_bytes(8, "little") for k in (1, 1, 3, 3)]
    assert records_of(tmp_path, b"SNAPPY") == expected


@pytest.mark.parametrize(("compression", "error"), [(b"", "truncated"), (b"GZIP", "inflate"), (b"SNAPPY", "corrupted")])
def test_damage_is_told(compression: bytes, error: str, tmp_path: Path) -> None:
    """Whether a file is cut off or no such file at all."""
    writer = ShardWriter(tmp_path, compression)
    writer.write([b"x" * 100])
    writer.close()
    path = tmp_path / "00000000.snapshot"
    data = path.read_bytes()
    path.write_bytes(data[:-5] if compression != b"GZIP" else b"nothing of the sort")
    with pytest.raises(DataLossError, match=error):
        records_of(tmp_path, compression)


@given(st.binary(max_size=300_000))
def test_a_block_of_literals_is_valid(data: bytes) -> None:
    """Of any length."""
    assert snappy.uncompressed(snappy.as_literals(data)) == data
