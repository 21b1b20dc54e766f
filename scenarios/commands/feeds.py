"""Tensors in files: feeds from .npy and .npz, fetched values to .npz.

A value must have the element type of its tensor: nothing is converted, and nothing is unpickled. Bytes and texts
(numpy's S and U) become string tensors. bfloat16 and similar types are stored as raw bytes of the same size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import BufferedWriter
from pathlib import Path
from zipfile import BadZipFile, ZipFile

import numpy as np

from ...graph import DataType, Graph, parse_tensor_name
from ...graph.analysis.fed_nodes import means_anything
from ...graph.dtypes import Array, base_type, dtype_name, numpy_dtype
from ...graph.suggestions import meant
from .failure import ConfigurationError

_REGISTERED = 2  # dtype.isbuiltin of types that other packages add to numpy, which files cannot name
_NO_OBJECTS = (
    "{} is an array of Python objects, which only unpickling could read, and a pickle may run any code; "
    "save text as array.astype('U'), bytes as array.astype('S')"
)

Feed = Array | tuple[int, ...] | None
"""a value, the shape of one, or None for only a name"""


def split_assignment(text: str) -> tuple[str, Path | None]:
    """Name and file of `NAME=FILE`, or name and None of `NAME`; ConfigurationError when either is empty."""
    name, equals, file = text.partition("=")
    if not name or (equals and not file):
        raise ConfigurationError(f"--feed {text!r} is not NAME=FILE.npy; write for example --feed x=x.npy")
    return name, Path(file) if equals else None


def shape_of(feed: Array | tuple[int, ...]) -> tuple[int, ...]:
    """The shape of a feed that is a value or a shape."""
    return feed if isinstance(feed, tuple) else feed.shape


def read_feeds(assignments: Sequence[tuple[str, Path | None]], archive: Path | None) -> dict[str, Array | None]:
    """The fed tensors by name, those of the archive first; None for a name without a file.

    Raises ConfigurationError for a file that cannot be read and for a tensor that is fed twice.
    """
    feeds: dict[str, Array | None] = dict(_read_archive(archive)) if archive is not None else {}
    for name, file in assignments:
        if name in feeds:
            raise ConfigurationError(f"tensor {name!r} is fed twice; give one file for it")
        feeds[name] = (
            None if file is None else _as_tensor(_load(file, f"feed {name!r}"), f"feed {name!r}: {str(file)!r}")
        )
    return feeds


def _read_archive(path: Path) -> dict[str, Array]:
    archive = _open(path, "--feeds")
    if not isinstance(archive, np.lib.npyio.NpzFile):
        raise ConfigurationError(f"--feeds: {str(path)!r} is one array; give an .npz, or use --feed NAME={path}")
    with archive:
        tensors = {}
        for key in archive.files:
            where = f"--feeds: {str(path)!r}: {key!r}"
            tensors[key] = _as_tensor(_member(archive, key, where), where)
        return tensors


def _member(archive: np.lib.npyio.NpzFile, key: str, where: str) -> Array:
    try:
        array: Array = archive[key]
    except (ValueError, BadZipFile, OSError) as error:
        raise ConfigurationError(_NO_OBJECTS.format(where) if _is_pickled(error) else f"{where}: {error}") from error
    return array


def _load(path: Path, where: str) -> Array:
    """The array of an .npy, or the only one of an .npz, whatever its key."""
    loaded = _open(path, where)
    if not isinstance(loaded, np.lib.npyio.NpzFile):
        return loaded
    with loaded:
        if len(loaded.files) != 1:
            raise ConfigurationError(
                f"{where}: {str(path)!r} is an archive of {len(loaded.files)} arrays; give it with --feeds"
            )
        return _member(loaded, loaded.files[0], f"{where}: {str(path)!r}")


def _open(path: Path, where: str) -> Array | np.lib.npyio.NpzFile:
    try:
        loaded: Array | np.lib.npyio.NpzFile = np.load(path, allow_pickle=False)
    except OSError as error:
        raise ConfigurationError(f"{where}: cannot read {str(path)!r}: {error.strerror or error}") from error
    except (ValueError, EOFError, BadZipFile) as error:
        if _is_pickled(error):
            raise ConfigurationError(_NO_OBJECTS.format(f"{where}: {str(path)!r}")) from error
        raise ConfigurationError(
            f"{where}: {str(path)!r} is not an .npy or .npz file of plain arrays ({error})"
        ) from error
    return loaded


def _is_pickled(error: Exception) -> bool:
    """Whether numpy refused to read an array because its elements are Python objects."""
    return isinstance(error, ValueError) and str(error).startswith("Object arrays cannot be loaded")


def _as_tensor(array: Array, where: str) -> Array:
    """The array as a tensor: texts and bytes become objects of type bytes."""
    if array.dtype.kind == "U":
        return _objects(array, [text.encode() for text in array.reshape(-1).tolist()])
    if array.dtype.kind == "S":
        return _objects(array, array.reshape(-1).tolist())
    if array.dtype.kind in "OMm":
        raise ConfigurationError(f"{where} holds {array.dtype.name}, which no tensor can hold; save numbers or bytes")
    return array


def _objects(like: Array, items: Sequence[bytes]) -> Array:
    array = np.empty(len(items), object)
    array[:] = items
    return array.reshape(like.shape)


def checked_feeds(feeds: Mapping[str, Feed], graph: Graph) -> dict[str, Feed]:
    """`feeds`, raw bytes viewed as the type of their tensor; ConfigurationError for a wrong name, type or shape."""
    return {name: _checked(name, value, graph) for name, value in feeds.items()}


def _checked(name: str, value: Feed, graph: Graph) -> Feed:
    tensor = parse_tensor_name(name)
    node = graph.find_node(tensor.node)
    if node is None:
        known = (known for known in graph.names() if known is not None)
        hint = meant(tensor.node, known)
        raise ConfigurationError(f"feed {name!r}: the graph has no node {tensor.node!r}{hint}{_placeholders(graph)}")
    if not 0 <= tensor.index < node.num_outputs:
        raise ConfigurationError(f"feed {name!r}: node {node.name!r} ({node.op}) has {node.num_outputs} outputs")
    if value is None:
        return None
    if not isinstance(value, tuple):
        value = _of_type(name, value, base_type(node.output_types[tensor.index]))
    fed = shape_of(value)
    shape = node.attrs.get("shape") if node.properties.op_def.record.is_placeholder else None
    if shape is None or means_anything(node.op, shape, graph.versions.producer):
        return value
    if len(shape) != len(fed) or any(w not in (None, n) for w, n in zip(shape, fed, strict=True)):
        raise ConfigurationError(f"feed {name!r} has shape {shape_text(fed)}; the graph wants {shape_text(shape)}")
    return value


def _of_type(name: str, value: Array, expected: DataType) -> Array:
    numpy_type = numpy_dtype(expected)
    if value.dtype == numpy_type:
        return value
    # numpy writes element types that it does not know, bfloat16 among them, as raw bytes.
    if value.dtype.kind == "V" and value.dtype.itemsize == numpy_type.itemsize:
        return value.view(numpy_type)
    actual = "string" if value.dtype == object else value.dtype.name
    raise ConfigurationError(
        f"feed {name!r} holds {actual}, the graph wants {dtype_name(expected)}; save it with that type"
    )


def _placeholders(graph: Graph) -> str:
    names = [node.name for node in graph.op_nodes() if node.properties.op_def.record.is_placeholder]
    return f"; its placeholders are {', '.join(names[:8])}{' ...' if len(names) > 8 else ''}" if names else ""


def shape_text(shape: Sequence[int | None] | None) -> str:
    """[2,?] for a shape, "unknown" for an unknown rank."""
    return "unknown" if shape is None else f"[{','.join('?' if n is None else str(n) for n in shape)}]"


def write_values(path: Path, values: Mapping[str, Array]) -> None:
    """Writes an .npz with one array per name; string tensors as numpy bytes.

    Raises ConfigurationError when the file cannot be written or a string ends in a zero byte, which numpy would lose.
    """
    stored = {name: _storable(name, value) for name, value in values.items()}  # all values, before the file is opened
    try:
        with path.open("wb") as file, ZipFile(_Stream(file), "w") as archive:
            # Not np.savez: a tensor called "file" would clash with its argument.
            for name, value in stored.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, value, allow_pickle=False)
    except OSError as error:
        raise ConfigurationError(f"--out: cannot write {str(path)!r}: {error.strerror or error}") from error


class _Stream:
    """A file without seek, so that zipfile writes it from front to back and it may be a pipe."""

    def __init__(self, file: BufferedWriter) -> None:
        self._file = file

    def write(self, data: bytes, /) -> int:
        """Writes bytes; returns how many."""
        return self._file.write(data)

    def flush(self) -> None:
        """Writes the buffered bytes."""
        self._file.flush()

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


def _storable(name: str, value: Array) -> Array:
    if value.dtype.isbuiltin == _REGISTERED:
        return value.view(f"V{value.dtype.itemsize}")
    if value.dtype != object:
        return value
    if any(not isinstance(item, bytes) for item in value.reshape(-1)):
        raise ConfigurationError(f"--out: {name!r} is not a tensor of numbers or strings and cannot be written")
    if any(item.endswith(b"\0") for item in value.reshape(-1)):
        raise ConfigurationError(f"--out: a string of {name!r} ends in a zero byte, which an .npz cannot keep")
    return value.astype(np.bytes_)
