"""The records of one file, each with a key: lines, pieces of one length, records of TFRecord files, whole files.

    Lines(b"a.txt", content, skip=0)     ("a.txt:1", "first line"), ("a.txt:2", "second line")
A read that fails leaves the position, so that the next one fails too.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NamedTuple, Protocol

from ....graph.formats.record_file import record_at
from ....graph.formats.storage import read_file

KeyedRecord = tuple[bytes, bytes]
"""key and value"""


class RecordSource(Protocol):
    """An open file."""

    def read(self) -> KeyedRecord | None:
        """The next record; None at the end."""


class TextLines:
    """Lines without their ends and without carriage returns; keys have their numbers, from 1 on."""

    def __init__(self, name: bytes, content: bytes, skip: int) -> None:
        self._name = name
        self._content = content
        self._position = self._number = 0
        for _ in range(skip):
            self.read()

    def read(self) -> KeyedRecord | None:
        """As `RecordSource.read`."""
        start, content = self._position, self._content
        if start >= len(content):
            return None
        end = content.find(b"\n", start)
        end = len(content) if end < 0 else end
        self._position, self._number = end + 1, self._number + 1
        return b"%s:%d" % (self._name, self._number), content[start:end].replace(b"\r", b"")


class Lengths(NamedTuple):
    """The bytes before the first record, of a record, behind the last one, and from one record to the next."""

    header: int
    record: int
    footer: int
    hop: int


class Pieces:
    """Pieces of one length; keys have their numbers, from 0 on. A shorter rest is left out."""

    def __init__(self, name: bytes, content: bytes, lengths: Lengths) -> None:
        self._name = name
        self._content = content
        self._lengths = lengths
        self._number = 0

    def read(self) -> KeyedRecord | None:
        """As `RecordSource.read`."""
        header, length, footer, hop = self._lengths
        start = header + self._number * (hop or length)
        if start + length > len(self._content) - footer:
            return None
        key = b"%s:%d" % (self._name, self._number)
        self._number += 1
        return key, self._content[start : start + length]


class Records:
    """Records of a TFRecord file; keys have their positions."""

    def __init__(self, name: bytes, content: bytes) -> None:
        self._name = name
        self._content = memoryview(content)
        self._position = 0

    def read(self) -> KeyedRecord | None:
        """As `RecordSource.read`; DataLossError for a damaged record."""
        found = record_at(self._content, self._position)
        if found is None:
            return None
        key = b"%s:%d" % (self._name, self._position)
        record, self._position = found
        return key, record


class Single:
    """One record: the name of the file as the key, and what `value` makes of it."""

    def __init__(self, name: bytes, value: Callable[[bytes], bytes]) -> None:
        self._name = name
        self._value = value

    def read(self) -> KeyedRecord | None:
        """As `RecordSource.read`, but there is no end: a reader finishes the file with its one record."""
        return self._name, self._value(self._name)


def content_of(name: bytes) -> bytes:
    """The content of a file; raises the file system's error."""
    return read_file(os.fsdecode(name))
