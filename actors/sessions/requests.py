"""What a client asks for and hands in: names of feeds, fetches and targets, and the values in between.

Flows in: names and values as users write them. Flows out: a `Signature` (plans are cached under it), tensors as kernels
like them, numpy arrays for the user. Always holds: order and duplicates are kept; a fed array is never written to, a
fetched one is read-only, and the two never share memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...devices.kernels.variables.session_tensors import TENSOR_HANDLE
from ...devices.state import ResourceHandle
from ...errors import InvalidArgumentError, OutOfRangeError, PartitaError
from ...graph.builder.tensor_names import Name, tensor_names
from ...graph.dtypes import DataType, dtype_name, from_numpy, numpy_dtype
from ...graph.suggestions import meant
from ...graph.tensor_id import TensorId, parse_tensor_name
from ..plans.binding import scalar_form
from ..plans.instructions import DEAD, owner, read

if TYPE_CHECKING:
    from ...devices.state import SessionTensors
    from ...graph.dtypes import Array
    from ...graph.graph import Graph

# Any: the keys are names, and a mapping with keys of one kind of name is none with keys of all kinds.
Feeds = Mapping[Any, npt.ArrayLike] | Iterable[tuple[Name, npt.ArrayLike]]

_WIDENS_TO = {"b": "b", "i": "iufc", "f": "fc", "c": "c"}  # kinds of Python numbers -> kinds of element types


class Signature(NamedTuple):
    """Names as the user wrote them, in the user's order; those of a partial run are full and sorted.

    A partial run meets its client at the rendezvous, other runs read and write a call frame.
    """

    feeds: tuple[str, ...]
    fetches: tuple[str, ...]
    targets: tuple[str, ...]
    is_partial: bool = False


class Port(NamedTuple):
    """A place where a tensor goes in or comes out: feed or fetch `number`, by the name that the user gave it."""

    number: int
    name: str
    dtype: DataType
    numpy_dtype: np.dtype[Any]  # only the graph knows which


def split_feeds(feeds: Feeds | None) -> tuple[tuple[str, ...], list[Any]]:
    """Names and values of the feeds, in order; InvalidArgumentError for what is neither a mapping nor pairs."""
    if feeds is None:
        return (), []
    if isinstance(feeds, dict):
        return tensor_names(tuple(feeds)), list(feeds.values())
    try:
        pairs = list(feeds.items() if isinstance(feeds, Mapping) else feeds)
        keys, values = [name for name, _ in pairs], [value for _, value in pairs]
    except (TypeError, ValueError):
        raise InvalidArgumentError(
            f'feeds: {type(feeds).__name__} is no mapping from tensors to values; write for example {{"x": x}}'
        ) from None
    return tensor_names(tuple(keys)), values


def check_names(graph: Graph, signature: Signature) -> None:
    """Raises InvalidArgumentError for a feed or fetch of an unknown node, OutOfRangeError for one of no output."""
    if not any(True for _ in graph.op_nodes()):
        raise InvalidArgumentError("Session was not created with a graph before Run()!")
    for text in (*signature.feeds, *signature.fetches):
        tensor = parse_tensor_name(text)
        node = graph.find_node(tensor.node)
        if node is None:
            named = TensorId(tensor.node, tensor.index)
            raise InvalidArgumentError(
                f"Tensor {named}, specified in either feed_devices or fetch_devices was not found in the Graph"
                f"{meant(tensor.node, known_names(graph))}"
            )
        if not 0 <= tensor.index < node.num_outputs:
            raise OutOfRangeError(
                f"Node '{node.name}' (type: '{node.op}', num of outputs: {node.num_outputs}) "
                f"does not have output {tensor.index}"
            )


def known_names(graph: Graph) -> list[str]:
    """Names that somebody may have meant: those of the nodes that are not made by Partita itself."""
    return [name for name in graph.names() if name and not name.startswith("_")]


def inputs_of(graph: Graph, error: PartitaError) -> list[str] | None:
    """Names of the tensors that the node of an error is given; None when it is given none, or is in a function."""
    node = None if error.node is None or error.function is not None else graph.find_node(error.node)
    return None if node is None else [text for text in node.requested_inputs if text[0] != "^"] or None


def ports(names: Sequence[str], dtypes: Iterable[DataType]) -> tuple[Port, ...]:
    """Ports of these names and element types, numbered."""
    return tuple(
        Port(number, name, dtype, numpy_dtype(dtype))
        for number, (name, dtype) in enumerate(zip(names, dtypes, strict=True))
    )


def fed_values(ports: Sequence[Port], values: Sequence[Any], kept: SessionTensors, *, copy: bool) -> list[Any]:
    """The values of feeds as tensors, in order, see `feed_value`; a handle of a tensor that is `kept` stands for it.

    Raises InvalidArgumentError for what `feed_value` refuses, and for the handle of a tensor that was deleted.
    """
    return [
        feed_value(port, _session_tensor(value, kept) if _is_of_objects(value) else value, copy=copy)
        for port, value in zip(ports, values, strict=True)
    ]


def _is_of_objects(value: object) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.hasobject


def _session_tensor(value: Array, kept: SessionTensors) -> Array:
    handle = value.item() if value.size == 1 else None
    if isinstance(handle, ResourceHandle) and handle.type_name == TENSOR_HANDLE:
        return kept.get(handle.name)
    return value


def feed_value(port: Port, value: Any, *, copy: bool) -> Any:  # Any: users feed what they like
    """A fed value as a tensor: arrays must have exactly the element type, Python numbers and lists a fitting kind.

    With `copy` the tensor does not share memory with `value`. Raises InvalidArgumentError.
    """
    _, _, dtype, wanted = port
    if isinstance(value, np.generic) and value.dtype == wanted:
        return value
    if isinstance(value, np.ndarray | np.generic) and dtype is not DataType.STRING:
        array = np.asarray(value)
        if array.dtype != wanted:
            raise _mismatch(port, dtype_name(from_numpy(array.dtype)))
    else:
        array = _converted(port, value)
    if array.ndim == 0:
        return scalar_form(array)
    if copy:
        return array.copy()
    view = array.view()
    view.flags.writeable = False
    return view


def _converted(port: Port, value: Any) -> Array:
    """An array from numbers, strings, nested lists, or an object that knows how to become an array."""
    number, name, dtype, wanted = port
    try:
        if wanted.hasobject:
            natural = value if isinstance(value, np.ndarray) else np.array(value, object)
            natural = _as_strings(natural) if dtype is DataType.STRING else natural
            fits = natural.dtype == wanted
        else:
            natural = np.asarray(value)
            fits = wanted.kind in _WIDENS_TO.get(natural.dtype.kind, "") or natural.dtype == wanted or not natural.size
        if fits:
            return np.asarray(natural if wanted.hasobject else value, wanted)
    except (ValueError, TypeError, OverflowError) as error:
        message = f"arg[{number}] cannot become a {dtype_name(dtype)} tensor: {error}"
        raise InvalidArgumentError(message, inputs=(name,)) from error
    raise _mismatch(port, dtype_name(_python_type(natural)))


def _python_type(array: Array) -> DataType:
    """The element type that Python values have when nobody asks for another."""
    plain = {"i": DataType.INT32, "f": DataType.FLOAT, "U": DataType.STRING, "S": DataType.STRING, "O": DataType.STRING}
    return plain.get(array.dtype.kind) or from_numpy(array.dtype)


def _as_strings(array: Array) -> Array:
    """Text and bytes of any array as an object array of bytes; TypeError for other objects, numbers as they are."""
    if array.dtype.kind not in "SUO":
        return array
    strings = np.empty(array.shape, object)
    for at, item in np.ndenumerate(array):
        if not isinstance(item, str | bytes):
            raise TypeError(f"{item!r} is no string")
        strings[at] = item.encode() if isinstance(item, str) else bytes(item)
    return strings


def _mismatch(port: Port, found: str) -> InvalidArgumentError:
    message = f"Expects arg[{port.number}] to be {dtype_name(port.dtype)} but {found} is provided"
    return InvalidArgumentError(message, inputs=(port.name,))


def fetched_array(port: Port, value: Any, fed: Sequence[Any]) -> Array:
    """A fetched tensor as a read-only array; InvalidArgumentError when it is dead."""
    if value is DEAD:
        raise InvalidArgumentError(f"Retval[{port.number}] does not have value", inputs=(port.name,))
    array = read_only(value, port.numpy_dtype)
    if any(owner(array) is owner(other) for other in fed):
        array = array.copy()
        array.flags.writeable = False
    return array


def read_only(value: Any, scalar_type: np.dtype[Any] | None = None) -> Array:  # Any: a tensor, or a variable
    """A tensor, or what a variable is at this moment, as an array that nobody can write to; scalars become one, too.

    Raises FailedPreconditionError for a variable that is not initialised.
    """
    found = read(value)
    array = found if isinstance(found, np.ndarray) else np.asarray(found, scalar_type)
    if array.flags.writeable:
        array = array.view()
        array.flags.writeable = False
    return array


def seconds(timeout_ms: int) -> float:
    """A time limit as TensorFlow writes it, 0 for none."""
    return timeout_ms / 1000 if timeout_ms > 0 else inf
