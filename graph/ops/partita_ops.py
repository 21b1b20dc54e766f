"""Ops that TensorFlow lacks and Partita has: declared in words, with the arguments that they take from host memory.

    Partita>AllToAllV           an all-to-all of which every member says how many rows each of the others gets
    Partita>CopiedOver          what it is given; its gradient is the sum over a group of devices that have copies of it

Their names begin with "Partita>", so that none of TensorFlow's can be meant.
"""

from __future__ import annotations

from ..protos import OpDef
from . import partita_exchanges
from .declaration import op_def_from_words

HOST_ARGS = partita_exchanges.HOST_ARGS
"""the arguments in host memory, by op, on devices of every kind"""


def partita_ops() -> list[OpDef]:
    """The declarations, sorted by name."""
    return sorted(map(op_def_from_words, partita_exchanges.DECLARATIONS), key=lambda op: op.name)
