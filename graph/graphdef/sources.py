"""What may stand where a graph is wanted.

Flows in: a GraphDef message (ours or TensorFlow's own), its bytes, the path of its file, a `GraphBuilder`, a `Graph`,
or a TensorFlow graph. Flows out: the bytes of a GraphDef, or the message. Always holds: where the meaning is plain it
is taken; anything else is an InvalidArgumentError that names the type and says what to give.
"""

from __future__ import annotations

from os import PathLike, fspath
from typing import Any, Protocol, TypeAlias, TypeVar

from google.protobuf.message import Message

from ...errors import InvalidArgumentError, shown
from ..graph import Graph
from ..protos import GraphDef, LazyGraphDef
from .files import read_graph_bytes


class Serialisable(Protocol):
    """Any object that is a GraphDef on the wire: messages, TensorFlow's own included, builders and graphs."""

    def SerializeToString(self) -> bytes:  # noqa: N802 - protobuf named it
        """The message as bytes."""
        ...


Parsed = TypeVar("Parsed", bound=Message)
GraphSource: TypeAlias = GraphDef | Serialisable | bytes | str | PathLike[str]

_HELP = "give a GraphDef, its bytes, the path of its file, a GraphBuilder or a Graph"


def graph_bytes(source: GraphSource) -> bytes:
    """The GraphDef of `source` as bytes, which nobody has looked at yet.

    Raises NotFoundError for a path without a file, InvalidArgumentError for what is no graph.
    """
    if isinstance(source, bytes):
        return source
    if isinstance(source, (bytearray, memoryview)):
        return bytes(source)
    if isinstance(source, (str, PathLike)):
        return read_graph_bytes(fspath(source))
    message: Any = source  # of a class that may not be ours
    if hasattr(message, "as_graph_def"):  # a graph of TensorFlow
        message = message.as_graph_def()
    kind = getattr(getattr(message, "DESCRIPTOR", None), "name", "GraphDef")
    if isinstance(message, type) or not hasattr(message, "SerializeToString"):
        raise InvalidArgumentError(f"{type(source).__name__} {shown(source)} is no graph; {_HELP}")
    if kind not in ("GraphDef", "LazyGraphDef"):
        inner = "; its field graph_def is one" if hasattr(message, "graph_def") else f"; {_HELP}"
        raise InvalidArgumentError(f"a {kind} is no graph{inner}")
    data: bytes = message.SerializeToString()
    return data


def check_graph(graph: object) -> None:
    """InvalidArgumentError unless `graph` is a `Graph`, for functions that work on one in place."""
    if not isinstance(graph, Graph):
        help_ = "call its method graph()" if hasattr(graph, "graph_def") else "import it with graph_def_to_graph"
        raise InvalidArgumentError(f"{type(graph).__name__} {shown(graph)} is no Graph; {help_}")


def is_path(source: object) -> bool:
    """Whether a graph is given by the path of its file, which takes time to read."""
    return isinstance(source, (str, PathLike))


def parse_lazily(graph_def: GraphSource) -> LazyGraphDef:
    """The GraphDef with its attrs left as bytes; InvalidArgumentError when it is none, and as `graph_bytes` raises."""
    return parsed(LazyGraphDef, graph_bytes(graph_def))


def parse_graph_def(graph_def: GraphSource) -> GraphDef:
    """A GraphDef of the caller's own; raises as `parse_lazily`."""
    return parsed(GraphDef, graph_bytes(graph_def))


def parsed(kind: type[Parsed], data: bytes) -> Parsed:
    """The message in some bytes; InvalidArgumentError when there is none."""
    try:
        return kind.FromString(data)
    except Exception as error:  # protobuf's own DecodeError type differs between its implementations
        raise InvalidArgumentError("Invalid GraphDef: the bytes are damaged or of another format") from error
