"""Rendezvous keys: the name under which one tensor of one edge, frame and iteration crosses between two devices.

Flows in: the parts of a key, or its wire form `src_device;incarnation;dst_device;edge_name;frame_id:iter_id` with the
incarnation as 16 lower-case hex digits. Flows out: a `Key`. Always holds: the wire form is the identity, to the letter
(`/cpu:0` and `/device:CPU:0` are two different ends), so a `Key` equals, and hashes like, its own string, and the two
find each other in a table; `Key.parse(str(key)) == key`.

Hot loops use texts and never parse one. A stem is a key without its frame part: what a compiled plan knows of a
transfer. A frame is the rest: what a run knows. The two, added, are the key:

    >>> stem("/cpu:0", 1, "/cpu:1", "edge_3_x") + frame_text(7, 2)
    '/cpu:0;0000000000000001;/cpu:1;edge_3_x;7:2'
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

from ..errors import InvalidArgumentError

# The graph floor owns device names, and the two floors never see each other: only the syntax is checked here.
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
"""the frame of everything outside of loops and calls"""


def stem(src_device: str, src_incarnation: int, dst_device: str, edge_name: str) -> str:
    """A key up to its frame; the parts are not checked, see `Key`."""
    return f"{src_device};{src_incarnation:016x};{dst_device};{edge_name};"


def stems(routes: Sequence[tuple[str, int, str]], tensors: Iterable[tuple[int, str]]) -> list[str]:
    """The stems of many tensors, each given as the index of its route and its name.

    A route is a device, its incarnation and the device it sends to. As `stem`, at half the price.
    """
    begins = [
        f"{src_device};{src_incarnation:016x};{dst_device};" for src_device, src_incarnation, dst_device in routes
    ]
    return [f"{begins[route]}{edge_name};" for route, edge_name in tensors]


def frame_text(frame_id: int | str, iter_id: int) -> str:
    """The frame of one iteration. A name may stand for the number where both ends take it for one."""
    return f"{frame_id}:{iter_id}"


def instance_number(instance: str) -> int:
    """The frame number of a loop or call that is under way, from its name: the same on all devices."""
    return int.from_bytes(blake2b(instance.encode(), digest_size=8).digest(), "big")


def edge_of(key: str) -> str:
    """The name of the tensor that travels under a key. The key is one that parses."""
    return key.split(";", 4)[3]


def source(key: str) -> tuple[str, int]:
    """The device that sends under a key, and the incarnation that is meant. The key is one that parses."""
    src_device, incarnation, _rest = key.split(";", 2)
    return src_device, int(incarnation, 16)


@dataclass(frozen=True, eq=False, slots=True)
class Key:
    """The identity of one transfer; the incarnation names one life of the source device, so a restart makes other keys.

    `frame_id` and `iter_id` are 0 at the root frame. Raises InvalidArgumentError for parts that do not spell a key.
    """

    src_device: str
    src_incarnation: int
    dst_device: str
    edge_name: str
    frame_id: int = 0
    iter_id: int = 0
    wire: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Builds the wire form and refuses parts that it could not carry."""
        wire = self.stem + frame_text(self.frame_id, self.iter_id)
        in_range = 0 <= self.src_incarnation < _INCARNATION_END and self.frame_id >= 0 and self.iter_id >= 0
        if not in_range or _WIRE.fullmatch(wire) is None:
            raise _invalid(wire)
        object.__setattr__(self, "wire", wire)  # the class is frozen for everybody else

    @classmethod
    def parse(cls, text: str) -> Key:
        """The key that `text` spells, kept to the letter: `str(Key.parse(text)) == text`.

        Valid are exactly five parts, two device names (an empty one too), a hexadecimal incarnation, an edge name and a
        last part. What the last part says is not checked: where it is not `frame:iteration` both ids read 0.
        Raises InvalidArgumentError.
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
        """The key up to its frame; with another frame added it is the key of another iteration."""
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
    """The error of the field for a key that does not parse; its two blanks are part of the text."""
    return InvalidArgumentError(f"Invalid  rendezvous key: {text}")
