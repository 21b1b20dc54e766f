"""Names of tensors and control dependencies: "node", "node:1", "^node".

Flows in: the text of a NodeDef input, a feed or a fetch. Flows out: a `TensorId`, a plain (node, index) pair that
compares and hashes as a tuple. Always holds: parsing never fails (whatever is no index belongs to the name), and
parsing the text of a parsed id gives the id back.
"""

from __future__ import annotations

from typing import NamedTuple

CONTROL_INDEX = -1
_MAX_PLAIN_DIGITS = 9  # any number this long fits the 32 bits that TensorFlow counts in


class TensorId(NamedTuple):
    """Output `index` of `node`; index -1 means the node itself, as a control dependency."""

    node: str
    index: int  # type: ignore[assignment]  # the field says "index" for this; nobody calls tuple.index on an id

    @property
    def is_control(self) -> bool:
        """Whether this names a control dependency."""
        return self.index == CONTROL_INDEX

    def __str__(self) -> str:
        return f"^{self.node}" if self.index == CONTROL_INDEX else f"{self.node}:{self.index}"


def parse_tensor_name(text: str) -> TensorId:
    """Reads "node", "node:1" or "^node".

    The index is looked for first, so "^node:1" is output 1 of a node called "^node". A colon without a name before it
    or digits after it is part of the name. Indices wrap at 32 bits as they do in TensorFlow.
    """
    if ":" in text:
        node, _, digits = text.rpartition(":")
        if node and digits.isdecimal() and digits.isascii():
            return TensorId(node, _index(digits))
    if text[:1] == "^":
        return TensorId(text[1:], CONTROL_INDEX)
    return TensorId(text, 0)


def _index(digits: str) -> int:
    if len(digits) <= _MAX_PLAIN_DIGITS:
        return int(digits)
    wrapped = int(digits) & 0xFFFFFFFF
    return wrapped - (1 << 32) if wrapped >= 1 << 31 else wrapped
