"""Graphs on disk: GraphDef as binary or text.

Flows in: a path. Flows out: a GraphDef or its bytes, and back. Always holds: the suffix decides between text and
binary, and a file that is neither is refused with its name.
"""

from __future__ import annotations

from pathlib import Path

from google.protobuf import text_format
from google.protobuf.message import DecodeError

from ..errors import InvalidArgumentError, NotFoundError
from .protos import GraphDef

_TEXT_SUFFIXES = (".pbtxt", ".prototxt", ".textproto")


def graph_def_from_text(text: str, name: str = "the text") -> GraphDef:
    """The GraphDef that a text describes; fields of newer TensorFlow releases are passed over.

    Raises InvalidArgumentError with line and column where it does not parse.
    """
    try:
        return text_format.Parse(text, GraphDef(), allow_unknown_field=True)
    except text_format.ParseError as error:
        raise InvalidArgumentError(f"{name} is no GraphDef in text form: {error}") from error


def graph_def_to_text(graph_def: GraphDef) -> str:
    """The text form of a GraphDef."""
    return text_format.MessageToString(graph_def)


def load_graph_def(path: str | Path) -> GraphDef:
    """Reads a GraphDef: text if the file's suffix is .pbtxt, .prototxt or .textproto, else binary.

    Raises NotFoundError when there is no such file and InvalidArgumentError when it holds no GraphDef.
    """
    try:
        return GraphDef.FromString(read_graph_bytes(path))
    except DecodeError as error:
        raise no_graph_def(path) from error


def read_graph_bytes(path: str | Path) -> bytes:
    """The GraphDef of a file as binary, which is all that an import needs: a binary file is not even looked at.

    Raises NotFoundError when there is no such file and InvalidArgumentError when it is text and holds no GraphDef.
    """
    path = Path(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise NotFoundError(f"cannot read {str(path)!r}: {error.strerror}; give the path of a GraphDef file") from error
    if path.suffix in _TEXT_SUFFIXES:
        return graph_def_from_text(data.decode("utf-8", "replace"), repr(str(path))).SerializeToString()
    return data


def no_graph_def(path: str | Path) -> InvalidArgumentError:
    """What to raise for a file whose bytes are no GraphDef."""
    return InvalidArgumentError(
        f"{str(path)!r} holds no GraphDef: damaged, or of another format (a text graph must end in .pbtxt)"
    )


def save_graph_def(graph_def: GraphDef, path: str | Path) -> None:
    """Writes a GraphDef, as text if the suffix says so, else as binary with a fixed order of attrs."""
    path = Path(path)
    if path.suffix in _TEXT_SUFFIXES:
        path.write_text(graph_def_to_text(graph_def))
    else:
        path.write_bytes(graph_def.SerializeToString(deterministic=True))
