"""The memory of a step <-> columns of what is in its buffers, and a description in JSON.

Names of nodes and iterations are numbers of those of the events, as nearly all of them are there too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from attrs import frozen

from ....graph.arrays import distinct
from ..events import TextColumn
from ..memory.categories import MEMORY_CATEGORIES
from ..memory.kinds import memory_names
from ..memory.spans import HeldSpans
from ..memory.use import MemoryUse, limits_of
from .coding import ColumnDocument, ColumnReader, ColumnWriter

if TYPE_CHECKING:
    from ...cluster import Cluster
    from .archive import Column
    from .coding import TextNumbers


@frozen
class MemoryDocument:
    """The description of `count` tensors in buffers."""

    columns: dict[str, ColumnDocument]
    categories: tuple[str, ...]
    count: int


def memory_columns(memory: MemoryUse, texts: Mapping[str, TextNumbers]) -> tuple[dict[str, object], dict[str, Column]]:
    """The description, and the arrays that it names; `texts` gets the names of nodes and iterations."""
    spans, writer = memory.spans, ColumnWriter("memory_")
    writer.add("memory", spans.memory)
    writer.add_differences("start_ns", spans.start_ns)
    writer.add("end_ns", spans.end_ns, ("start_ns", spans.start_ns))
    writer.add("size_bytes", spans.size_bytes)
    writer.add_differences("node", texts["node"].of(spans.node))
    writer.add("output", spans.output)
    writer.add("category", spans.category)
    writer.add("iteration", texts["iteration"].of(spans.iteration))
    described = {"columns": writer.descriptions, "categories": list(MEMORY_CATEGORIES), "count": len(spans.memory)}
    return described, writer.arrays


def read_memory(
    document: MemoryDocument,
    arrays: Mapping[str, Column],
    texts: Mapping[str, list[str]],
    cluster: Cluster,
    where: str,
) -> MemoryUse:
    """The memory of a description; DataLossError, whose text begins with `where`, for what cannot be."""
    reader = ColumnReader(document.columns, arrays, document.count, where)
    if document.categories != MEMORY_CATEGORIES:
        raise reader.damaged(f"it has other categories of memory than {', '.join(MEMORY_CATEGORIES)}")
    memories = memory_names(cluster.names)

    def text(name: str) -> TextColumn:
        known = texts.get(name, [])
        return TextColumn(reader.read(name, 0, len(known)), lambda: known)

    spans = HeldSpans(
        memory=reader.read("memory", 0, len(memories)),
        start_ns=reader.read("start_ns", 0),
        end_ns=reader.read("end_ns", 0),
        size_bytes=reader.read("size_bytes", 1),
        node=text("node"),
        output=reader.read("output", 0),
        category=reader.read("category", 0, len(MEMORY_CATEGORIES)),
        iteration=text("iteration"),
    )
    limits = limits_of(cluster)
    if not {memories[number] for number in distinct(spans.memory).tolist()} <= limits.keys():
        raise reader.damaged("a buffer is in a memory that its cluster does not have")
    if (spans.end_ns <= spans.start_ns).any():
        raise reader.damaged("a buffer is gone before it is there")
    return MemoryUse(spans.lives, lambda: spans, memories, limits)
