"""Readers give the records of the files that a queue names, in order, and wait for the queue."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.devices.kernels.files.record_sources import Lengths, Pieces, Records, TextLines
from partita.errors import DataLossError, InvalidArgumentError, NotFoundError, OutOfRangeError, UnimplementedError
from partita.graph.dtypes import Array
from partita.graph.formats.record_file import framed
from tests.devices.kernels.calls import FakeCall, FakeStep, start
from tests.devices.kernels.harness import run, shapes
from tests.devices.kernels.queued import FLOAT, STRING, Queued

VERSIONS = pytest.mark.parametrize("version", ["", "V2"])


class Fed:
    """A reader on a device with one queue of names."""

    def __init__(self, kind: str, version: str = "V2", **attrs: Any) -> None:
        self.queue = Queued("FIFOQueue", (STRING,), version)
        self.state, self.version = self.queue.state, version
        self.handle = run(kind + version, state=self.state, name="reader", **attrs)

    def put(self, *names: bytes | Path) -> None:
        for name in names:
            self.queue.put(np.array(str(name).encode() if isinstance(name, Path) else name, object))

    def read(self, step: FakeStep | None = None) -> FakeCall:
        handles = self.handle, self.queue.handle
        return start(f"ReaderRead{self.version}", *handles, state=self.state, step=step)

    def read_up_to(self, most: int) -> list[bytes]:
        handles = self.handle, self.queue.handle
        call = start(f"ReaderReadUpTo{self.version}", *handles, np.int64(most), state=self.state)
        values: list[bytes] = result(call)[1].tolist()
        return values

    def do(self, op: str, *inputs: Array) -> Any:
        return run(f"Reader{op}{self.version}", self.handle, *inputs, state=self.state)

    @property
    def counts(self) -> tuple[int, int]:
        """Records read and files finished."""
        return int(self.do("NumRecordsProduced")), int(self.do("NumWorkUnitsCompleted"))


def result(call: FakeCall) -> Any:
    """The outputs of a call; raises its error."""
    assert call.outcome is not None
    kind, value = call.outcome
    if kind == "failed":
        raise value
    return value


def record(reader: Fed) -> tuple[bytes, bytes]:
    key, value = result(reader.read())
    return key.item(), value.item()


def file(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


@VERSIONS
def test_lines_of_several_files(version: str, tmp_path: Path) -> None:
    """TensorFlow 2.21 counts a file as finished when the next read finds its end."""
    first = file(tmp_path, "a", b"h1\nline2\r\n\nlast")
    reader = Fed("TextLineReader", version)
    reader.put(first, file(tmp_path, "empty", b""), file(tmp_path, "b", b"x\n"))
    name = str(first).encode()
    assert [record(reader) for _ in range(4)] == [
        (name + b":1", b"h1"),
        (name + b":2", b"line2"),
        (name + b":3", b""),
        (name + b":4", b"last"),
    ]
    assert reader.counts == (4, 0)
    assert record(reader)[1] == b"x"
    assert reader.counts == (5, 2)
    reader.queue.close()
    with pytest.raises(OutOfRangeError, match="is closed and has insufficient elements"):
        record(reader)
    assert reader.counts == (5, 3)


@VERSIONS
def test_files_of_one_record(version: str, tmp_path: Path) -> None:
    """They are finished with it, and the state of their readers can be taken to another one."""
    path = file(tmp_path, "a", b"content")
    whole, identity = Fed("WholeFileReader", version), Fed("IdentityReader", version)
    for reader, value in ((whole, b"content"), (identity, str(path).encode())):
        reader.put(path)
        assert record(reader) == (str(path).encode(), value)
        assert reader.counts == (1, 1)
    state = identity.do("SerializeState")
    assert state.item() == b"\x08\x01\x10\x01\x18\x01\x22" + bytes([len(str(path))]) + str(path).encode()
    other = Fed("IdentityReader", version)
    other.do("RestoreState", state)
    assert other.counts == (1, 1)
    other.do("Reset")
    assert other.counts == (0, 0)
    assert other.do("SerializeState").item() == b""


def test_a_restored_reader_goes_on_with_its_file(tmp_path: Path) -> None:
    """A file that was started and not finished; impossible states are refused and reset it."""
    path = str(file(tmp_path, "a", b"content")).encode()
    reader = Fed("WholeFileReader")
    reader.do("RestoreState", np.array(b"\x08\x02\x10\x01\x22" + bytes([len(path)]) + path, object))
    assert record(reader) == (path, b"content")
    assert reader.counts == (1, 2)
    for state, message in (
        (b"zzz", "Could not parse state for WholeFileReader 'reader': zzz"),
        (b"\x08\x05\x10\x03", "Inconsistent work started vs. finished"),
        (b"\x08" + b"\xff" * 9 + b"\x01", "Unexpected negative value"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            reader.do("RestoreState", np.array(state, object))
        assert reader.counts == (0, 0)
    with pytest.raises(UnimplementedError, match="Reader SerializeState"):
        Fed("TextLineReader").do("SerializeState")


def test_several_records_at_once_are_of_one_file(tmp_path: Path) -> None:
    """TensorFlow 2.21 looks for more in a file until it has enough or finds the end."""
    reader = Fed("TextLineReader")
    reader.put(file(tmp_path, "a", b"1\n2\n3\n"), file(tmp_path, "b", b"4\n"))
    assert reader.read_up_to(0) == []
    assert reader.read_up_to(2) == [b"1", b"2"]
    assert reader.read_up_to(1) == [b"3"]
    assert reader.counts == (3, 0)
    assert reader.read_up_to(5) == [b"4"]
    assert reader.counts == (4, 2)


def test_reads_wait_for_names_in_order(tmp_path: Path) -> None:
    """One whose step ends leaves the name to the next."""
    reader, step = Fed("IdentityReader"), FakeStep()
    first, second, third = reader.read(), reader.read(step), reader.read()
    assert first.outcome is None
    reader.put(b"a")
    assert result(first)[0].item() == b"a"
    step.cancel()
    assert second.outcome is None
    reader.put(b"b")
    assert result(third)[0].item() == b"b"


def test_files_with_errors(tmp_path: Path) -> None:
    """A missing file of lines is passed over by the next read; damage, and a missing whole file, are met again."""
    good = file(tmp_path, "good", b"x\n")
    lines, whole, records = Fed("TextLineReader"), Fed("WholeFileReader"), Fed("TFRecordReader")
    for reader in (lines, whole):
        reader.put(tmp_path / "none", good)
        with pytest.raises(NotFoundError, match="No such file or directory"):
            record(reader)
    assert record(lines)[1] == b"x"
    with pytest.raises(NotFoundError, match="No such file or directory"):
        record(whole)
    records.put(file(tmp_path, "cut", framed(b"a") + framed(b"b")[:-1]))
    assert record(records)[1] == b"a"
    for _ in range(2):
        with pytest.raises(DataLossError, match="truncated record at 17'"):
            record(records)


@pytest.mark.parametrize("compression", ["", "ZLIB"])
def test_records_and_pieces_of_compressed_files(compression: str, tmp_path: Path) -> None:
    """Keys have positions in what was compressed, or numbers."""
    pack = zlib.compress if compression else bytes
    records = Fed("TFRecordReader", compression_type=compression)
    path = file(tmp_path, "r", pack(framed(b"hello") + framed(b"")))
    records.put(path)
    assert [record(records) for _ in range(2)] == [(b"%b:0" % bytes(path), b"hello"), (b"%b:21" % bytes(path), b"")]
    attrs: dict[str, Any] = {"header_bytes": 2, "record_bytes": 4, "footer_bytes": 3, "encoding": compression}
    pieces = Fed("FixedLengthRecordReader", **attrs)
    pieces.put(file(tmp_path, "f", pack(b"HHabcdefghijkLLL")))
    assert [record(pieces)[1] for _ in range(2)] == [b"abcd", b"efgh"]


@given(st.binary(max_size=60), st.integers(0, 3), st.integers(1, 5), st.integers(0, 3), st.integers(0, 6))
def test_pieces_are_slices(content: bytes, header: int, length: int, footer: int, hop: int) -> None:
    """Every `hop` bytes, or one after the other, as long as they end before the footer."""
    source = Pieces(b"f", content, Lengths(header, length, footer, hop))
    starts = range(header, len(content) - footer - length + 1, hop or length)
    for number, place in enumerate(starts):
        assert source.read() == (b"f:%d" % number, content[place : place + length])
    assert source.read() is None


@given(st.lists(st.text("ab\r", max_size=4)), st.integers(0, 3))
def test_lines_are_split(lines: list[str], skip: int) -> None:
    """Without carriage returns and without the first ones; the last may end with the file."""
    source = TextLines(b"f", "".join(f"{line}\n" for line in lines).encode(), skip)
    for number, line in list(enumerate(lines, 1))[skip:]:
        assert source.read() == (b"f:%d" % number, line.replace("\r", "").encode())
    assert source.read() is None
    assert Records(b"f", b"").read() is None


def test_refusals() -> None:
    """Attrs out of range, and queues of something else; TensorFlow 2.21 has these words."""
    with pytest.raises(InvalidArgumentError, match="skip_header_lines must be >= 0 not -1"):
        Fed("TextLineReader", skip_header_lines=-1)
    with pytest.raises(InvalidArgumentError, match="header_bytes must be >= 0 not -1"):
        Fed("FixedLengthRecordReader", record_bytes=1, header_bytes=-1)
    with pytest.raises(InvalidArgumentError, match="there are '', 'ZLIB' and 'GZIP'"):
        Fed("TFRecordReader", compression_type="ZIP")
    reader = Fed("IdentityReader")
    for name, types, message in (
        ("two", (STRING, STRING), "Expected single component queue"),
        ("floats", (FLOAT,), "Expected queue with single string component"),
    ):
        queue = run("FIFOQueueV2", state=reader.state, name=name, component_types=types)
        with pytest.raises(InvalidArgumentError, match=message):
            result(start("ReaderReadV2", reader.handle, queue, state=reader.state))


def test_shapes() -> None:
    """One key and one value, or vectors of them."""
    assert shapes("ReaderReadV2", (), ()) == [(), ()]
    assert shapes("ReaderReadUpTo", (2,), None, ()) == [(None,), (None,)]
    assert shapes("IdentityReader") == [(2,)]
    with pytest.raises(InvalidArgumentError, match="Shape must be rank 0"):
        shapes("ReaderRestoreStateV2", (), (2,))
    with pytest.raises(InvalidArgumentError, match="Dimensions must be equal, but are 3 and 2"):
        shapes("ReaderReset", (3,))
