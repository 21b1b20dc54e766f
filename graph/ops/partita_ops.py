"""Ops that TensorFlow lacks and Partita has: declared in words, with the arguments that they take from host memory.

    partita_exchanges    an all-to-all of unequal parts, and other ops by which devices exchange tensors
    partita_float8       products in 8-bit floats, which the clock knows and no kernel computes
    partita_layers       attention and other layers of transformers as one kernel each
    partita_products     grouped products of experts, and a cross entropy over parts of a vocabulary

Their names begin with "Partita>", so that none of TensorFlow's can be meant.
"""

from __future__ import annotations

from ..protos import OpDef
from . import partita_exchanges, partita_float8, partita_layers, partita_products
from .declaration import op_def_from_words

_MODULES = (partita_exchanges, partita_float8, partita_layers, partita_products)
HOST_ARGS = {op: args for module in _MODULES for op, args in module.HOST_ARGS.items()}
"""the arguments in host memory, by op, on devices of every kind"""


def partita_ops() -> list[OpDef]:
    """The declarations, sorted by name."""
    declarations = (words for module in _MODULES for words in module.DECLARATIONS)
    return sorted(map(op_def_from_words, declarations), key=lambda op: op.name)
