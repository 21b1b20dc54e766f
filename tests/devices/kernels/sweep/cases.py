"""The calls of kernels that are swept: small graphs, each with a node "target" and its inputs "input_0", "input_1", ...

They were recorded from the tests of the kernels (`recording`). The file holds serialised GraphDefs, each after its
length; the modules here that TensorFlow's process imports, too, import nothing of Partita.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator
from pathlib import Path

FILE = Path(__file__).parent / "data" / "calls.gz"
TARGET, INPUT = "target", "input_"


def write_graphs(path: Path, graphs: Iterable[bytes]) -> None:
    """Writes a file of serialised graphs; the same bytes for the same graphs."""
    data = b"".join(len(graph).to_bytes(4, "little") + graph for graph in graphs)
    path.write_bytes(gzip.compress(data, 9, mtime=0))


def read_graphs(path: Path = FILE) -> Iterator[bytes]:
    """The serialised graphs of a file."""
    data = gzip.decompress(path.read_bytes())
    at = 0
    while at < len(data):
        end = at + 4 + int.from_bytes(data[at : at + 4], "little")
        yield data[at + 4 : end]
        at = end
