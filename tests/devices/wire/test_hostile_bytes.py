"""Bytes from anybody: what `encode` did not make is a typed error, found before memory of the stated size is taken."""

from __future__ import annotations

import json
import pickle
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.devices.kernels.carried import carrying
from partita.devices.kernels.lists.optional import Optional
from partita.devices.kernels.lists.tensor_list import listing
from partita.devices.kernels.lists.tensor_map import MapEntry, TensorMap
from partita.devices.kernels.sparse.csr_matrix import CSRMatrix, CsrRows
from partita.devices.kernels.sparse.ragged_variants import RaggedValue
from partita.devices.state import ResourceHandle, handle_array
from partita.devices.wire import FORMAT, NotSent, WireMessage, decode, size_of, unsendable
from partita.devices.wire.carried_values import FORMS
from partita.devices.wire.sections import (
    AGAIN,
    ARRAY,
    BYTES,
    ERROR,
    FIRST_CARRIED,
    HANDLE,
    MAX_DEPTH,
    NOTHING,
    OBJECTS,
    RANK,
    STRIDED,
    STRINGS,
    preamble,
)
from partita.errors import DataLossError, InvalidArgumentError
from partita.graph.dtypes import DataType
from tests.devices.wire.drawn_values import values
from tests.devices.wire.in_one_piece import encoded

FLOAT = DataType.FLOAT
PLACES = {kind.__name__: FIRST_CARRIED + place for place, kind in enumerate(FORMS)}
MANY = 2**40


def batch(
    kinds: list[int],
    numbers: list[int],
    blobs: bytes = b"",
    *,
    scalars: bytes = b"",
    texts: Any = None,  # Any: what JSON can have
) -> bytes:
    """A batch of one message of these sections, all of them as told."""
    told = {"messages": [[{}, 1]], "handles": [], "errors": []} if texts is None else texts
    text = told if isinstance(told, bytes) else json.dumps(told).encode()
    packed = np.array(numbers, np.int64).tobytes()
    sizes = (len(text), len(kinds), len(packed), len(scalars), len(blobs))
    return b"".join([preamble(sizes), text, bytes(kinds), packed, scalars, blobs])


def rich() -> bytes:
    """A batch with an item of every kind."""
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    rows = CsrRows(np.array([0, 1], np.int32), np.array([1], np.int32), np.ones(1, np.float32))
    tensors = [
        *(np.float32(1), np.bool_(True), x, x.T, x[:, ::2], np.broadcast_to(x, (2, 2, 3)), x, None, b"graph"),
        *(np.array([b"a", b"bc"], object), handle_array(ResourceHandle("d", "c", "n", "t")), NotSent("ABORTED", "w")),
        *(listing(FLOAT, (None, 3), [x, None]), carrying(Optional((x,), (FLOAT,))), np.array([True, False])),
        carrying(TensorMap.of([MapEntry(np.array(b"k", object), DataType.STRING, x, FLOAT)])),
        carrying(RaggedValue((np.array([0, 2]),), x, FLOAT)),
        carrying(CSRMatrix(FLOAT, (1, 2), (rows,))),
    ]
    return encoded([WireMessage({"op": "data"}, tensors), WireMessage({"op": "ping"}, [])])


def check_refused(data: bytes) -> None:
    """Asserts that bytes are an error of the two types, or messages whose tensors can be looked at."""
    try:
        messages = decode(data)
    except (DataLossError, InvalidArgumentError):
        return
    for message in messages:
        for tensor in message.tensors:
            assert (size_of(tensor) >= 0, unsendable(tensor)) == (True, None)


def test_truncated_at_every_point() -> None:
    """Each beginning of a batch is refused, and so is a batch with something behind it."""
    data = rich()
    for end in range(len(data)):
        with pytest.raises((DataLossError, InvalidArgumentError)):
            decode(data[:end])
    with pytest.raises(DataLossError, match="sections have"):
        decode(data + b"\0")


@given(st.data())
def test_changed_bytes(data: st.DataObject) -> None:
    """A batch of which some bytes were changed is read or refused."""
    original = bytearray(rich())
    for _ in range(data.draw(st.integers(1, 4))):
        original[data.draw(st.integers(0, len(original) - 1))] = data.draw(st.integers(0, 255))
    check_refused(bytes(original))


@given(st.lists(values, max_size=3), st.data())
def test_changed_numbers(tensors: list[Any], data: st.DataObject) -> None:
    """The same where whole numbers, kinds or lengths are changed to what they might be elsewhere."""
    original = encoded([WireMessage({}, tensors)])
    place = data.draw(st.integers(8, len(original)))
    number = data.draw(st.sampled_from([-1, 0, 1, 3, 64, 2**31, 2**62, 2**63 - 1, -(2**63)]) | st.integers(-9, 9))
    changed = original[:place] + number.to_bytes(8, "little", signed=True) + original[place + 8 :]
    check_refused(changed)


@given(st.lists(st.integers(0, 100), max_size=8), st.lists(st.integers(-2, 9) | st.integers(), max_size=12), st.data())
def test_drawn_sections(kinds: list[int], numbers: list[int], data: st.DataObject) -> None:
    """Any kinds and numbers with bytes for them are read or refused."""
    numbers = [max(min(number, 2**63 - 1), -(2**63)) for number in numbers]
    texts = {"messages": [[{}, len(kinds)]], "handles": [["d", "c", "n", "t"]], "errors": [["ABORTED", "why"]]}
    blobs, scalars = data.draw(st.binary(max_size=40)), data.draw(st.binary(max_size=20))
    check_refused(batch(kinds, numbers, blobs, scalars=scalars, texts=texts))


@given(st.binary(max_size=200))
def test_any_bytes_are_refused(data: bytes) -> None:
    """Bytes that nobody encoded are no messages."""
    with pytest.raises((DataLossError, InvalidArgumentError)):
        decode(data)


def test_another_format_is_named() -> None:
    """A message of another version says both versions, one of another order of bytes says that, other bytes neither."""
    data = bytearray(rich())
    data[4] = FORMAT + 1
    with pytest.raises(InvalidArgumentError, match=f"format {FORMAT + 1}, and this process reads format {FORMAT}"):
        decode(bytes(data))
    data = bytearray(rich())
    data[6] ^= 3
    with pytest.raises(InvalidArgumentError, match="order of bytes"):
        decode(bytes(data))
    with pytest.raises(InvalidArgumentError, match="begins no message"):
        decode(b"GET / HTTP/1.1\r\n" * 9)


def _first(rank: int, *flags: int) -> int:
    """The first number of an array of float32."""
    return rank * RANK + FLOAT + sum(flags)


WRONG: dict[str, tuple[bytes, str]] = {
    "an array larger than the message": (batch([ARRAY], [_first(1), MANY]), "bytes of elements"),
    "sizes whose product overflows": (batch([ARRAY], [_first(3), 2**22, 2**22, 2**22]), "has the shape"),
    "sizes that overflow beside a zero": (batch([ARRAY], [_first(3), 0, 2**62, 2**62]), "has the shape"),
    "a negative size": (batch([ARRAY], [_first(1), -1]), "has the shape"),
    "two negative sizes": (batch([ARRAY], [_first(2), -1, -4], bytes(16)), "has the shape"),
    "too many axes": (batch([ARRAY], [_first(65), *[1] * 65], bytes(4)), "array begins with"),
    "a negative number of axes": (batch([ARRAY], [_first(-1)]), "array begins with"),
    "an unknown flag": (batch([ARRAY], [_first(0, 1 << 12)], bytes(4)), "array begins with"),
    "an unknown element type": (batch([ARRAY], [200]), "no element type 200"),
    "strings as an element type": (batch([ARRAY], [int(DataType.STRING)], bytes(8)), "no element type 7"),
    "more strings than there are": (batch([STRINGS], [RANK, MANY]), "numbers, and"),
    "a string longer than the message": (batch([STRINGS], [RANK, 1, MANY]), "bytes of elements"),
    "a string of negative length": (batch([STRINGS], [RANK, 2, 3, -3], b"abc"), "bytes of elements"),
    "more objects than there are": (batch([OBJECTS], [RANK, MANY]), "items, and"),
    "bytes longer than the message": (batch([BYTES], [MANY]), "bytes of elements"),
    "a list longer than the message": (batch([PLACES["TensorList"]], [3, MANY, 1, -1, -1]), "items, and"),
    "a list of more numbers than there are": (batch([PLACES["TensorList"]], [MANY, 0]), "numbers, and"),
    "a list without a shape": (batch([PLACES["TensorList"]], [2, 0, 1, -1]), "no type, limit or shape"),
    "a list of a wrong shape": (batch([PLACES["TensorList"]], [4, 0, 1, -1, 2, 3]), "wrong shape"),
    "a list of no known type": (batch([PLACES["TensorList"]], [3, 0, 99, -1, -1]), "no element type"),
    "bytes inside a list": (batch([PLACES["TensorList"], BYTES], [3, 1, 1, -1, -1, 0]), "should be a tensor"),
    "an optional of no types": (batch([PLACES["Optional"], NOTHING], [0, 1]), "numbers of types"),
    "nothing inside an optional": (batch([PLACES["Optional"], NOTHING], [2, 1, 0, 1]), "should be a tensor"),
    "a map of one tensor": (batch([PLACES["TensorMap"], 1], [1, 1, 1], scalars=bytes(4)), "numbers of types"),
    "a ragged tensor of nothing": (batch([PLACES["RaggedValue"]], [1, 0, 1]), "ragged"),
    "a sparse matrix of nothing": (batch([PLACES["CSRMatrix"]], [3, 0, 1, 2, 2]), "sparse matrix"),
    "a handle that is not there": (batch([HANDLE], [0]), "no resource handle of number 0"),
    "an error that is not there": (batch([ERROR], [-1]), "no error of number -1"),
    "an item before itself": (batch([AGAIN], [0]), "no earlier item"),
    "a value inside itself": (batch([OBJECTS, AGAIN], [0, 0]), "no earlier item"),
    "an axis named twice": (batch([ARRAY], [_first(2, STRIDED), 1, 2, 0, 0], bytes(8)), "an axis twice"),
    "a gap in an axis of one": (batch([ARRAY], [_first(1, STRIDED), 1, 1], bytes(4)), "has the flags"),
    "a repeated axis reversed": (batch([ARRAY], [_first(1, STRIDED), 3, 6], bytes(4)), "has the flags"),
    "a Boolean that is 2": (batch([ARRAY], [RANK + DataType.BOOL, 1], b"\2"), "neither 0 nor 1"),
    "a Boolean scalar that is 2": (batch([int(DataType.BOOL)], [], scalars=b"\2"), "neither 0 nor 1"),
    "a scalar that is not there": (batch([1], []), "bytes of scalars, and 4"),
    "a scalar too many": (batch([NOTHING], [], scalars=bytes(4)), "4 bytes of scalars"),
    "an unknown kind": (batch([79], []), "no item of kind 79"),
    "an item too many": (batch([NOTHING, NOTHING], []), "1 items, 0 numbers and 0 bytes"),
    "a number too many": (batch([NOTHING], [1]), "0 items, 1 numbers and 0 bytes"),
    "a byte too many": (batch([NOTHING], [], b"x"), "0 items, 0 numbers and 1 bytes"),
    "values too deep": (batch([OBJECTS] * 99 + [NOTHING], [0] * 99), f"more than {MAX_DEPTH} deep"),
    "texts too deep": (batch([], [], texts=b"[" * 100000), "no JSON"),
    "texts that are no text": (batch([], [], texts=b"\xff"), "no JSON"),
    "a number of many digits": (batch([], [], texts=b"9" * 10000), "no JSON"),
    "texts of other parts": (batch([], [], texts={}), "other parts"),
    "messages that are no list": (batch([], [], texts={"messages": {}, "handles": [], "errors": []}), "no list"),
    "a header that is no object": (
        batch([], [], texts={"messages": [[1, 0]], "handles": [], "errors": []}),
        "no header",
    ),
    "a negative number of tensors": (
        batch([], [], texts={"messages": [[{}, -1]], "handles": [], "errors": []}),
        "no number of tensors",
    ),
    "more tensors than there are": (
        batch([], [], texts={"messages": [[{}, MANY]], "handles": [], "errors": []}),
        "items, and",
    ),
    "a handle of two texts": (
        batch([], [], texts={"messages": [], "handles": [["a", "b"]], "errors": []}),
        "no list of 4 texts",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_each_wrong_length_is_named(what: str) -> None:
    """Each way to lie is a DataLossError that says what is wrong, and takes less than 2 MB to find."""
    data, text = WRONG[what]
    tracemalloc.start()
    try:
        with pytest.raises(DataLossError, match=text):
            decode(data)
        assert tracemalloc.get_traced_memory()[1] < 2 << 20
    finally:
        tracemalloc.stop()


class _Attack:
    """An object that runs code where it is unpickled."""

    ran = False

    @classmethod
    def run(cls) -> int:
        """What the attack would do."""
        cls.ran = True
        return 0

    def __reduce__(self) -> tuple[Any, tuple[()]]:
        return _Attack.run, ()


def test_pickles_stay_bytes() -> None:
    """A pickled object array runs nothing: not as bytes, not as strings, not in place of the texts, not as elements."""
    pickled = pickle.dumps(np.array([_Attack()], object))
    strings = np.array([pickled], object)
    arrived = decode(encoded([WireMessage({}, [pickled, strings])]))[0].tensors
    assert (arrived[0], arrived[1].tolist()) == (pickled, [pickled])
    for data in (pickled, batch([], [], texts=pickled), batch([ARRAY], [int(DataType.VARIANT)], pickled)):
        with pytest.raises((DataLossError, InvalidArgumentError)):
            decode(data)
    (sent,) = decode(encoded([WireMessage({}, [np.array([_Attack()], object)])]))[0].tensors
    assert isinstance(sent, NotSent)
    assert not _Attack.ran
