"""GraphDef files, binary or text; the suffix decides which."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from google.protobuf import text_format
from google.protobuf.message import DecodeError

from ...errors import InvalidArgumentError, NotFoundError
from ..protos import GraphDef

_TEXT_SUFFIXES = (".pbtxt", ".prototxt", ".textproto")


def graph_def_from_text(text: str, name: str = "the text") -> GraphDef:
    """Parses a GraphDef in text form; fields of newer TensorFlow releases are ignored.

    Raises InvalidArgumentError with line and column where it does not parse.
    """
    try:
        return text_format.Parse(text, GraphDef(), allow_unknown_field=True)
    except text_format.ParseError as error:
        raise InvalidArgumentError(f"{name} is no GraphDef in text form: {error}") from error


def graph_def_to_text(graph_def: GraphDef) -> str:
    """The text form, as protobuf prints it; `graph_def_from_text` reads it back."""
    return text_format.MessageToString(graph_def)


def load_graph_def(path: str | PathLike[str] | bytes) -> GraphDef:
    """Reads a GraphDef file: text if the suffix is .pbtxt, .prototxt or .textproto, else binary; or parses bytes.

    Raises NotFoundError when there is no such file and InvalidArgumentError when it holds no GraphDef.
    """
    try:
        return GraphDef.FromString(path if isinstance(path, bytes) else read_graph_bytes(path))
    except DecodeError as error:
        raise no_graph_def(None if isinstance(path, bytes) else path) from error


def as_path(path: str | PathLike[str], what: str) -> Path:
    """`path` as a Path; InvalidArgumentError, which calls the file a `what`, for other types."""
    if not isinstance(path, (str, PathLike)):
        raise InvalidArgumentError(f"{type(path).__name__} is no path of a {what}; give text or a pathlib.Path")
    return Path(path)


def read_graph_bytes(path: str | PathLike[str]) -> bytes:
    """The binary GraphDef of a file, as an import needs it; a binary file is not parsed.

    Raises NotFoundError when there is no such file and InvalidArgumentError when it is a folder, or a text file that
    holds no GraphDef.
    """
    path = as_path(path, "GraphDef file")
    try:
        data = path.read_bytes()
    except IsADirectoryError:
        raise InvalidArgumentError(
            f"{str(path)!r} is a folder; give a GraphDef file, or open a SavedModel with open_saved_model"
        ) from None
    except OSError as error:
        raise NotFoundError(f"cannot read {str(path)!r}: {error.strerror}; give the path of a GraphDef file") from error
    if path.suffix in _TEXT_SUFFIXES:
        return graph_def_from_text(data.decode("utf-8", "replace"), repr(str(path))).SerializeToString()
    return data


def no_graph_def(path: str | PathLike[str] | None) -> InvalidArgumentError:
    """The error for a file, or for bytes without a path, that are no GraphDef."""
    what = "the bytes" if path is None else repr(str(path))
    return InvalidArgumentError(
        f"no GraphDef in {what}: damaged, or of another format (a text graph must end in .pbtxt)"
    )


def save_graph_def(graph_def: GraphDef, path: str | PathLike[str]) -> None:
    """Writes a GraphDef, as text if the suffix says so, else as binary with a fixed order of attrs.

    Raises InvalidArgumentError for other types and bad paths, OSError when the file cannot be written.
    """
    path = as_path(path, "GraphDef file")
    if not isinstance(graph_def, GraphDef):
        raise InvalidArgumentError(
            f"{type(graph_def).__name__} is no GraphDef; call graph_def() of a builder, to_graph_def() of a graph"
        )
    if path.suffix in _TEXT_SUFFIXES:
        path.write_text(graph_def_to_text(graph_def))
    else:
        path.write_bytes(graph_def.SerializeToString(deterministic=True))
