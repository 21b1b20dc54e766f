"""Ops of your own: a declaration, in words or as an OpDef, becomes a signature in the registry.

    register_op('''
        Smooth
        input values: T
        output smoothed: T
        attr T: {float, double} = float
    ''')

Its kernel, shape function, cost and gradient are registered beside it, as `docs/extending.md` shows.
"""

from __future__ import annotations

from typing import Unpack

from ...errors import AlreadyExistsError
from ..protos import OpDef
from .declaration import op_def_from_words
from .op_def_equality import same_op_def
from .op_def_rules import validate_op_def
from .record import Facts, OpRecord, add_record
from .registry import OpSignature, add_signature, find_op, is_built_in


def register_op(declaration: OpDef | str, **facts: Unpack[Facts]) -> OpSignature:
    """Registers an op of your own, declared in words (`graph/ops/declaration.py`) or as an OpDef.

    `facts` are fields of its `OpRecord`, for example `register_op(declaration, takes_long=True)`. The same declaration
    with the same facts may be repeated. Raises InvalidArgumentError for a declaration that breaks a rule,
    and AlreadyExistsError for the name of a built-in op, or of one that is declared otherwise.
    """
    message = op_def_from_words(declaration) if isinstance(declaration, str) else declaration
    validate_op_def(message)
    name = message.name
    present = find_op(name)
    if present is None:
        add_record(name, facts)
        return add_signature(message)
    if is_built_in(name):
        raise AlreadyExistsError(f"Op with name {name} is built in; choose another name", op=name)
    if not same_op_def(present.message, message) or present.record != OpRecord(name, **facts):
        raise AlreadyExistsError(
            f"Op with name {name} is registered with another declaration: {present.message}", op=name
        )
    return present
