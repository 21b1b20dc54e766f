"""The least that a process needs to read a graph: numpy, trio, the message classes, parsing the file. Prints peak
memory.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

from partita.graph.protos import GraphDef

from .memory import peak_bytes


def main(path: str) -> None:
    """Parses the file."""
    graph_def = GraphDef.FromString(Path(path).read_bytes())
    for library in ("numpy", "trio"):
        import_module(library)
    assert len(graph_def.node) > 0
    print(peak_bytes())


if __name__ == "__main__":
    main(sys.argv[1])
