"""What is encoded and decoded is what it was, for every kind of value, and what cannot travel says so in its place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.devices.kernels.carried import carrying, handle_carrying
from partita.devices.kernels.lists.optional import Optional
from partita.devices.kernels.lists.stacks import Stack
from partita.devices.kernels.lists.tensor_list import TensorList, listing
from partita.devices.state import ResourceHandle, Variable, handle_array
from partita.devices.wire import NotSent, WireMessage, decode, encode, size_of, unsendable
from partita.graph.dtypes import Array, DataType
from tests.devices.wire.drawn_values import assert_same, carried_values, scalars, values, views
from tests.devices.wire.in_one_piece import encoded
from tests.runs import counted_garbage

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
HEADERS = st.dictionaries(st.text(max_size=3), JSON, max_size=3)
FLOAT = DataType.FLOAT


def sent(*tensors: Any) -> list[Any]:  # Any: tensors of any kind
    """The tensors as they arrive in one message."""
    (message,) = decode(encoded([WireMessage({}, list(tensors))]))
    return message.tensors


@given(st.lists(st.tuples(HEADERS, st.lists(values, max_size=4)), max_size=3))
def test_messages_arrive_as_they_were(content: list[tuple[dict[str, Any], list[Any]]]) -> None:
    """Headers, and values of every kind, in every number and nesting."""
    messages = [WireMessage(header, tensors) for header, tensors in content]
    arrived = decode(encoded(messages))
    assert [message.header for message in arrived] == [message.header for message in messages]
    for one, other in zip(arrived, messages, strict=True):
        assert len(one.tensors) == len(other.tensors)
        for tensor, original in zip(one.tensors, other.tensors, strict=True):
            assert_same(tensor, original)


@given(st.lists(scalars, max_size=20))
def test_scalars_arrive_in_order(tensors: list[Any]) -> None:
    """Scalars alone, of mixed types, keep their classes, bits and places."""
    for one, other in zip(sent(*tensors), tensors, strict=True):
        assert_same(one, other)


@given(values)
def test_sizes_are_those_of_both_ends(value: Any) -> None:
    """A value has the same size before and after, and nothing drawn here is refused."""
    assert unsendable(value) is None
    assert size_of(sent(value)[0]) == size_of(value)


@given(carried_values | views())
def test_one_object_arrives_as_one(value: Any) -> None:
    """A value that is there twice is one object behind, in messages of their own too, and travels once."""
    messages = [WireMessage({}, [value, value]), WireMessage({}, [value])]
    first, second = decode(encoded(messages))
    assert first.tensors[0] is first.tensors[1]
    assert first.tensors[0] is second.tensors[0]
    alone = encoded([WireMessage({}, [value]), WireMessage({}, [])])
    assert len(encoded(messages)) <= len(alone) + 2 * 9


@pytest.mark.parametrize("dtype", ["bool", "int8", "float32", "complex128", "bfloat16"])
@pytest.mark.parametrize("other", [np.float32(1), np.ones(3, np.int8), b"text", np.ones((5, 400), np.float64)])
def test_an_array_that_is_nearly_the_whole_message_is_not_copied(dtype: str, other: Any) -> None:
    """It can be changed as any other, and its elements lie where their type wants them; from `bytes` it is a copy."""
    array = np.ones((1 << 8, 1 << 9), dtype)
    data = encoded([WireMessage({"op": "data"}, [array, other])])
    arrived_at = np.frombuffer(data, np.uint8).copy()
    (arrived,) = decode(arrived_at.data)
    assert_same(arrived.tensors[0], array)
    assert_same(arrived.tensors[1], other)
    assert np.shares_memory(arrived.tensors[0], arrived_at)
    assert arrived.tensors[0].flags.behaved
    (copied,) = decode(data)
    assert_same(copied.tensors[0], array)


def test_long_arrays_are_sent_where_they_are() -> None:
    """The pieces of a message hold all others."""
    one, other = np.ones(1 << 16), np.zeros((1 << 8, 1 << 8), np.float32)
    pieces = encode([WireMessage({}, [one, np.ones(3), other, np.float32(1)])])
    assert [np.shares_memory(np.frombuffer(piece, np.uint8), one) for piece in pieces].count(True) == 1
    assert [np.shares_memory(np.frombuffer(piece, np.uint8), other) for piece in pieces].count(True) == 1
    assert sum(map(len, pieces)) - one.nbytes - other.nbytes < 300


def test_arrays_that_share_a_message_have_memory_of_their_own() -> None:
    """So one that stays does not keep the others."""
    arrived_at = np.frombuffer(encoded([WireMessage({}, [np.ones(1 << 18), np.zeros(1 << 18)])]), np.uint8).copy()
    (arrived,) = decode(arrived_at.data)
    assert not any(np.shares_memory(tensor, arrived_at) for tensor in arrived.tensors)


def test_arrays_inside_values_are_shared_too() -> None:
    """Lists that share an element share what arrives."""
    x = np.ones(3, np.float32)
    one, other, alone = sent(listing(FLOAT, (3,), [x, None]), listing(FLOAT, (3,), [x]), x)
    assert one.item().items[0] is other.item().items[0] is alone
    assert one.item().items[1] is None


def test_values_that_share_values_stay_small() -> None:
    """Optionals of two times the same optional, 30 deep, are 30 and not 2 to the power of 30."""
    value: Array = np.ones((), np.float32)
    for _ in range(30):  # each is a value and the array that carries it: two levels
        value = carrying(Optional((value, value), (DataType.VARIANT,) * 2))
    optional = sent(value)[0].item()
    size, is_shared = size_of(optional), optional.values[0] is optional.values[1]
    assert (size, is_shared) == (4, True)  # pytest would write out what stands in an assertion: 2 to the power of 30


def test_scalars_and_arrays_without_axes_differ() -> None:
    """A numpy scalar, an array of no axes, and plain bytes beside an array of one string stay what they are."""
    arrived = sent(np.float32(2), np.array(2, np.float32), b"x", np.array(b"x", object), None)
    assert [type(value) for value in arrived] == [np.float32, np.ndarray, bytes, np.ndarray, type(None)]
    assert arrived[3].shape == ()
    assert arrived[3].item() == b"x"


def test_variables_arrive_as_their_values() -> None:
    """A reference arrives as the array; an uninitialised one as the error of reading it."""
    assigned, fresh = Variable("v", FLOAT, np.ones(2, np.float32)), Variable("w", FLOAT)
    array, error = sent(assigned, fresh)
    assert_same(array, assigned.value)
    assert error == NotSent("FAILED_PRECONDITION", "Attempting to use uninitialized value w")


class _Unknown:
    """An object that nobody knows."""


def _unsendable_values() -> dict[str, Any]:
    stack = Stack("s", FLOAT, -1)
    inside = TensorList(DataType.VARIANT, None, [carrying(stack)], 1)
    deep: Array = np.ones((), np.float32)
    for _ in range(40):
        deep = carrying(Optional((deep,), (DataType.VARIANT,)))
    return {
        "a stack": carrying(stack),
        "a stack ": handle_carrying(stack, DataType.STRING, "_stacks", "s"),
        "a stack  ": handle_carrying(stack, DataType.STRING_REF, "_stacks", "s"),
        "a stack   ": carrying(inside),
        "an object of class _Unknown": carrying(_Unknown()),
        "an object of class int": 3,
        "an object of class str": np.array("text", object),
        "an array of the numpy type datetime64[s]": np.zeros(2, "M8[s]"),
        "an array of the numpy type >f4": np.zeros(2, ">f4"),
        "a scalar of the numpy type float128": np.longdouble(1),
        "a value with values inside each other more than 64 deep": deep,
    }


@pytest.mark.parametrize("kind", _unsendable_values())
def test_what_cannot_travel_says_so_in_its_place(kind: str) -> None:
    """Its neighbours arrive; it arrives as an error that names its kind, and has no size that counts."""
    value = _unsendable_values()[kind]
    before, error, behind = sent(np.int32(1), value, np.int32(2))
    assert (before, behind) == (1, 2)
    assert isinstance(error, NotSent)
    assert (error.code, error.message.startswith(f"{kind.strip()} cannot go")) == ("UNIMPLEMENTED", True)
    assert unsendable(value) == kind.strip()


def test_a_value_inside_itself_is_refused() -> None:
    """An array that is its own element is found too deep, not searched for ever."""
    array = np.empty((), object)
    array[()] = array
    assert "deep" in (unsendable(array) or "")
    array[()] = None  # or only the collector could free it


def test_errors_and_handles_travel() -> None:
    """An error item can be sent on, and handles of one resource are equal behind."""
    error, handle = NotSent("ABORTED", "why"), ResourceHandle("/device:CPU:0", "c", "n", "t")
    arrived = sent(error, handle_array(handle), handle)
    assert arrived[0] == error
    assert arrived[1].item() == arrived[2] == handle
    assert arrived[2].key == handle.key


def test_strings_of_numpy_become_bytes() -> None:
    """Elements that are numpy's own bytes arrive as bytes, which is what kernels expect."""
    array = np.array([np.bytes_(b"a"), b"b"], object)
    arrived = sent(array)[0]
    assert [type(element) for element in arrived] == [bytes, bytes]


def test_arrays_own_their_memory() -> None:
    """What arrives can be written to and outlives the message; it is freed with its last reference."""
    data = bytearray(encoded([WireMessage({}, [np.arange(5000.0), np.arange(3)])]))
    (message,) = decode(memoryview(data))
    data[:] = bytes(len(data))
    assert message.tensors[0].base is None
    assert message.tensors[0].tolist() == list(range(5000))
    assert message.tensors[1].tolist() == [0, 1, 2]
    with counted_garbage() as left:
        decode(encoded([WireMessage({}, [np.arange(3)])]))
    assert left == [0]
