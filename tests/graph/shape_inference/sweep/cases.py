"""Graphs with the shapes that TensorFlow infers for all their tensors when it imports them, in `data/graphs.gz`.

A compressed list in JSON of a name, the GraphDef in base 64, and shapes by tensor: null for an unknown one, null for an
unknown size. This module imports nothing of Partita, since TensorFlow's process needs it, too.
"""

from __future__ import annotations

import gzip
import json
from base64 import b64decode, b64encode
from collections.abc import Iterable
from pathlib import Path

FILE = Path(__file__).parent / "data" / "graphs.gz"

Shapes = dict[str, list[int | None] | None]
Case = tuple[str, bytes, Shapes]


def write_cases(cases: Iterable[Case]) -> None:
    """Writes the file."""
    rows = [(name, b64encode(graph).decode(), shapes) for name, graph, shapes in cases]
    FILE.write_bytes(gzip.compress(json.dumps(rows).encode(), 9, mtime=0))


def read_cases() -> list[Case]:
    """The cases of the file, in their order."""
    rows: list[tuple[str, str, Shapes]] = json.loads(gzip.decompress(FILE.read_bytes()))
    return [(name, b64decode(graph), shapes) for name, graph, shapes in rows]
