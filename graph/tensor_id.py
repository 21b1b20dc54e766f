"""Names of tensors and control dependencies: "node", "node:1", "^node".

A `TensorId` is a (node, index) pair that compares and hashes as a tuple. Parsing never fails: text that is no index
belongs to the node name. Parsing the text of a parsed id gives the same id.
"""

from __future__ import annotations

from typing import NamedTuple

CONTROL_INDEX = -1
_MAX_PLAIN_DIGITS = 9  # numbers of up to 9 digits fit TensorFlow's int32


class TensorId(NamedTuple):
    """Output `index` of `node`; index -1 means a control dependency on the node."""

    node: str
    index: int  # type: ignore[assignment]  # "index" is the usual term; tuple.index is not needed

    @property
    def is_control(self) -> bool:
        """Whether this names a control dependency."""
        return self.index == CONTROL_INDEX

    def __str__(self) -> str:
        return f"^{self.node}" if self.index == CONTROL_INDEX else f"{self.node}:{self.index}"


def parse_tensor_name(text: str) -> TensorId:
    """Parses "node", "node:1" or "^node".

    The index is parsed first, so "^node:1" is output 1 of a node called "^node". A colon without digits after
    it is part of the name. Indices wrap at 32 bits as they do in TensorFlow.
    """
    if ":" in text:
        node, _, digits = text.rpartition(":")
        if digits.isdecimal() and digits.isascii():
            return TensorId(node, _index(digits))
    if text[:1] == "^":
        return TensorId(text[1:], CONTROL_INDEX)
    return TensorId(text, 0)


def _index(digits: str) -> int:
    if len(digits) <= _MAX_PLAIN_DIGITS:
        return int(digits)
    wrapped = int(digits) & 0xFFFFFFFF
    return wrapped - (1 << 32) if wrapped >= 1 << 31 else wrapped
