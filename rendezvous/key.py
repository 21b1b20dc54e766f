"""Rendezvous keys: the name under which one tensor of one edge, frame and iteration is sent between two devices.

The text of a key is `src_device;incarnation;dst_device;edge_name;frame_id:iter_id`, the incarnation in 16 lower-case
hex digits. The text is the identity of a key, letter by letter: `/cpu:0` and `/device:CPU:0` are two devices here.
A `Key` equals its text and has the same hash, so either finds the other in a dict; `Key.parse(str(key)) == key`.

Hot loops use texts and do not parse them. A plan knows the stem of a key, which is all but the frame; a run adds the
frame:

    >>> stem("/cpu:0", 1, "/cpu:1", "edge_3_x") + frame_text(7, 2)
    '/cpu:0;0000000000000001;/cpu:1;edge_3_x;7:2'
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

from ..errors import InvalidArgumentError

# Device names belong to graph/, which rendezvous/ does not import; only their syntax is checked here.
_NUMBER = r"(?:\*|[0-9]+)"
_WORD = r"(?:\*|[A-Za-z][A-Za-z0-9_]*)"
_DEVICE = (
    rf"(?:/|(?:/job:{_WORD}|/replica:{_NUMBER}|/task:{_NUMBER}|/device:{_WORD}(?::{_NUMBER})?"
    rf"|/(?:cpu|CPU|gpu|GPU):{_NUMBER})*)"
)
_WIRE = re.compile(rf"({_DEVICE});([0-9a-fA-F]+);({_DEVICE});([^;]+);([^;]+)")
_FRAME = re.compile(r"([0-9]+):([0-9]+)")
_INCARNATION_END = 1 << 64

ROOT_FRAME = "0:0"
"""the frame of all nodes outside of loops and calls"""


def stem(src_device: str, src_incarnation: int, dst_device: str, edge_name: str) -> str:
    """A key without its frame; unlike in `Key` the parts are not checked."""
    return f"{src_device};{src_incarnation:016x};{dst_device};{edge_name};"


def stems(routes: Sequence[tuple[str, int, str]], tensors: Iterable[tuple[int, str]]) -> list[str]:
    """The stems of many tensors, given as (index of the route, name); twice as fast as `stem` for each.

    A route is (source device, its incarnation, destination device).
    """
    begins = [
        f"{src_device};{src_incarnation:016x};{dst_device};" for src_device, src_incarnation, dst_device in routes
    ]
    return [f"{begins[route]}{edge_name};" for route, edge_name in tensors]


def frame_text(frame_id: int | str, iter_id: int) -> str:
    """The frame part of a key. Both ends must write `frame_id` in the same way: as a number or as a name."""
    return f"{frame_id}:{iter_id}"


def loop_number(around: str, loop: str) -> int:
    """The frame number of a loop that runs in the frame `around`; every device that has a share computes the same."""
    return _number("loop", around, loop)


def call_number(around: str, device: str, call: int, turn: str) -> int:
    """The frame number of a call from a node on `device` that runs in the frame `around`.

    `call` tells the calls of one device in one frame apart, `turn` those of one node. Only the caller computes it.
    """
    return _number("call", around, device, str(call), turn)


def _number(*path: str) -> int:
    """Other paths give other numbers, whatever is in their names: as text, the loop "f;3" would be call 3 of "f"."""
    return int.from_bytes(blake2b(repr(path).encode(), digest_size=8).digest(), "big")


def edge_of(key: str) -> str:
    """The name of the tensor that is sent under a key, which must be valid."""
    return key.split(";", 4)[3]


def source(key: str) -> tuple[str, int]:
    """The source device of a key and its incarnation in the key, which must be valid."""
    src_device, incarnation, _rest = key.split(";", 2)
    return src_device, int(incarnation, 16)


def destination(key: str) -> str:
    """The destination device of a key or stem, which must be valid."""
    return key.split(";", 3)[2]


@dataclass(frozen=True, eq=False, slots=True)
class Key:
    """The name of one transfer. It has the incarnation of the source device, so keys differ after a restart.

    `frame_id` and `iter_id` are 0 at the root frame. Raises InvalidArgumentError for parts that make no valid text.
    """

    src_device: str
    src_incarnation: int
    dst_device: str
    edge_name: str
    frame_id: int = 0
    iter_id: int = 0
    wire: str = field(init=False, repr=False)

    def __post_init__(self) -> None:

        wire = self.stem + frame_text(self.frame_id, self.iter_id)
        in_range = 0 <= self.src_incarnation < _INCARNATION_END and self.frame_id >= 0 and self.iter_id >= 0
        if not in_range or _WIRE.fullmatch(wire) is None:
            raise _invalid(wire)
        object.__setattr__(self, "wire", wire)  # the class is frozen

    @classmethod
    def parse(cls, text: str) -> Key:
        """The key with this text: `str(Key.parse(text)) == text`, letter by letter.

        A text has five parts: a device name, which may be empty, a hexadecimal incarnation, another device name, an
        edge name and a last part. If the last part is not `frame:iteration`, both ids are 0. Other texts raise
        InvalidArgumentError.
        """
        match = _WIRE.fullmatch(text)
        if match is None:
            raise _invalid(text)
        src_device, incarnation, dst_device, edge_name, last = match.groups()
        ids = _FRAME.fullmatch(last)
        frame_id, iter_id = (int(ids[1]), int(ids[2])) if ids else (0, 0)
        key = cls(src_device, int(incarnation, 16) % _INCARNATION_END, dst_device, edge_name, frame_id, iter_id)
        object.__setattr__(key, "wire", text)  # 1ED2 and 0000000000001ed2 are two keys of one incarnation
        return key

    @property
    def stem(self) -> str:
        """The key without its frame."""
        return stem(self.src_device, self.src_incarnation, self.dst_device, self.edge_name)

    def __str__(self) -> str:
        return self.wire

    def __hash__(self) -> int:
        return hash(self.wire)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Key):
            return self.wire == other.wire
        return self.wire == other if isinstance(other, str) else NotImplemented


def _invalid(text: str) -> InvalidArgumentError:
    """TensorFlow's error for a malformed key; the two blanks are in its text."""
    return InvalidArgumentError(f"Invalid  rendezvous key: {text}")
