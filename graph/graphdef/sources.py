"""What is accepted as a graph, and its conversion to the bytes of a GraphDef or to the message.

Accepted are a GraphDef message (ours or TensorFlow's), its bytes, the path of its file, a `GraphBuilder`, a `Graph`,
and a TensorFlow graph. Other types raise an InvalidArgumentError that names the type and says what to give.
"""

from __future__ import annotations

from os import PathLike, fspath
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

from google.protobuf.message import Message

from ...errors import InvalidArgumentError, shown
from ..graph import Graph
from ..protos import GraphDef, LazyGraphDef
from .files import read_graph_bytes


@runtime_checkable
class Serialisable(Protocol):
    """An object that serialises as a message: messages of any protobuf library, builders and graphs."""

    def SerializeToString(self) -> bytes:  # noqa: N802 - protobuf named it
        """The message as bytes."""
        ...


Parsed = TypeVar("Parsed", bound=Message)
GraphSource: TypeAlias = GraphDef | Serialisable | bytes | str | PathLike[str]

_HELP = "give a GraphDef, its bytes, the path of its file, a GraphBuilder or a Graph"


def graph_bytes(source: GraphSource) -> bytes:
    """The GraphDef of `source` as bytes, not parsed.

    Raises NotFoundError for a path without a file, InvalidArgumentError for other types.
    """
    if isinstance(source, bytes):
        return source
    if isinstance(source, (bytearray, memoryview)):
        return bytes(source)
    if isinstance(source, (str, PathLike)):
        return read_graph_bytes(fspath(source))
    message: Any = source  # its class may be one of TensorFlow's
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
    """InvalidArgumentError unless `graph` is a `Graph`; for functions that change one in place."""
    if not isinstance(graph, Graph):
        help_ = "call its method graph()" if hasattr(graph, "graph_def") else "import it with graph_def_to_graph"
        raise InvalidArgumentError(f"{type(graph).__name__} {shown(graph)} is no Graph; {help_}")


def parse_lazily(graph_def: GraphSource) -> LazyGraphDef:
    """The GraphDef with its attrs left as bytes. Raises InvalidArgumentError if it is damaged, and as `graph_bytes`."""
    return parsed(LazyGraphDef, graph_bytes(graph_def))


def parse_graph_def(graph_def: GraphSource) -> GraphDef:
    """The GraphDef as a new message; raises as `parse_lazily`."""
    return parsed(GraphDef, graph_bytes(graph_def))


def parsed(kind: type[Parsed], data: bytes) -> Parsed:
    """Parses a message; InvalidArgumentError when the bytes are damaged."""
    try:
        return kind.FromString(data)
    except Exception as error:  # protobuf's own DecodeError type differs between its implementations
        raise InvalidArgumentError("Invalid GraphDef: the bytes are damaged or of another format") from error
