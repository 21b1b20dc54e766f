"""The op registry: signatures of TensorFlow 2.21's public ops, of Partita's and of those of users and packages.

The signatures are read from `registry.pb` beside this file, a serialised OpList sorted by name, without descriptions.
The file is parsed at the first look-up; an `OpSignature` is made at the first look-up of its op and then shared.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import Any

from ... import entry_points
from ...errors import InvalidArgumentError, NotFoundError, Reason
from ..attrs import decode
from ..dtypes import DataType
from ..protos import OpDef, OpList
from .partita_ops import partita_ops
from .record import OpRecord, record_of
from .testing_ops import testing_ops

PRODUCER = 2474  # the GraphDef version of TensorFlow 2.21
MIN_PRODUCER = 0
RELEASE = "2.21.0"
# Inputs and attrs that describe the group: of CollectiveReduce and similar ops, of NCCL's ops and of TPUs.
_GROUP_ARGUMENTS = frozenset({"communicator", "group_assignment", "group_key", "num_devices", "source_target_pairs"})
_POINT_TO_POINT = "send_device"  # of Send and Recv, which the partitioner adds in pairs
_GROUP = "partita.ops"  # the entry points of packages that add ops


@dataclass(frozen=True, slots=True)
class ArgDef:
    """One declared input or output: a fixed `type`, or the names of the attrs that give types and number."""

    name: str
    type: DataType
    type_attr: str
    number_attr: str
    type_list_attr: str
    is_ref: bool


@dataclass(frozen=True, slots=True)
class AttrDef:
    """One declared attr; `default` is a serialised AttrValue or None, `allowed` are decoded values."""

    name: str
    type: str
    default: bytes | None
    minimum: int | None
    allowed: tuple[Any, ...] | None  # items are decoded attr values: their type is `type`


class OpSignature:
    """The signature of an op: arguments, attrs and flags."""

    def __init__(self, message: OpDef) -> None:
        self.message = message
        self.name = message.name
        self.input_args = tuple(map(_arg, message.input_arg))
        self.output_args = tuple(map(_arg, message.output_arg))
        self.attrs = {attr.name: _attr(attr) for attr in message.attr}
        self.is_stateful = message.is_stateful
        self.is_commutative = message.is_commutative
        self.is_aggregate = message.is_aggregate
        self.allows_uninitialized_input = message.allows_uninitialized_input

    @cached_property
    def record(self) -> OpRecord:
        """What passes must know of the op beside its signature; the first record asked for loads all rows."""
        return record_of(self.name)

    @property
    def deprecation(self) -> tuple[int, str] | None:
        """The GraphDef version that removed the op, and the reason; None for most ops."""
        if not self.message.HasField("deprecation"):
            return None
        return self.message.deprecation.version, self.message.deprecation.explanation

    @cached_property
    def defaults(self) -> dict[str, bytes]:
        """Serialised default values of the attrs that have one."""
        return {name: attr.default for name, attr in self.attrs.items() if attr.default is not None}

    @cached_property
    def takes_functions(self) -> bool:
        """Whether an attr of the op names functions."""
        return any(attr.type in ("func", "list(func)") for attr in self.attrs.values())

    @cached_property
    def is_collective(self) -> bool:
        """Whether the op exchanges tensors with other devices, or other steps, while its kernel runs.

        TensorFlow's registry flags the collectives of its own runtime. Others are recognised by the names of inputs and
        attrs that describe a group of devices, and a few by their records.
        """
        names = {*(arg.name for arg in self.input_args), *self.attrs}
        flagged = self.message.is_distributed_communication or self.record.is_collective
        return _POINT_TO_POINT not in names and (flagged or not names.isdisjoint(_GROUP_ARGUMENTS))

    def __repr__(self) -> str:
        return f"<OpSignature {self.name}>"


def unlisted(name: str) -> OpSignature:
    """A signature for an op of the compiler's own, which is in no registry and no GraphDef."""
    return OpSignature(OpDef(name=name))


def _arg(message: OpDef.ArgDef) -> ArgDef:
    return ArgDef(
        message.name,
        _declared_type(message),
        message.type_attr,
        message.number_attr,
        message.type_list_attr,
        message.is_ref,
    )


def _declared_type(message: OpDef.ArgDef) -> DataType:
    try:
        return DataType(message.type)
    except ValueError:
        raise InvalidArgumentError(f"argument '{message.name}' is declared with type number {message.type}") from None


def _attr(message: OpDef.AttrDef) -> AttrDef:
    return AttrDef(
        message.name,
        message.type,
        message.default_value.SerializeToString(deterministic=True) if message.HasField("default_value") else None,
        message.minimum if message.has_minimum else None,
        decode(message.allowed_values) if message.HasField("allowed_values") else None,
    )


@cache
def _messages() -> dict[str, OpDef]:
    data = files(__package__).joinpath("registry.pb").read_bytes()
    return {op.name: op for op in (*OpList.FromString(data).op, *testing_ops(), *partita_ops())}


_signatures: dict[str, OpSignature] = {}


def find_op(name: str) -> OpSignature | None:
    """The signature of an op, or None. The first unknown name imports the ops of installed packages."""
    signature = _signatures.get(name)
    if signature is None and is_built_in(name):
        signature = _signatures[name] = OpSignature(_messages()[name])
    elif signature is None:
        entry_points.import_modules(_GROUP)
        signature = _signatures.get(name)
    return signature


def is_built_in(name: str) -> bool:
    """Whether the op is one of TensorFlow's or Partita's, whose declaration nobody can replace."""
    return name in _messages()


def lookup_op(name: str) -> OpSignature:
    """The signature of an op; NotFoundError if there is none."""
    signature = find_op(name)
    if signature is None:
        raise NotFoundError(
            f"Op type not registered '{name}' in binary running on this machine. "
            "Make sure that the op is one of TensorFlow's public ops or register it first.",
            op=name,
        ).because(Reason.NO_OP)
    return signature


def add_signature(message: OpDef) -> OpSignature:
    """Adds the op of a checked declaration; `registration.register_op` is the way in for users."""
    signature = OpSignature(message)
    _signatures[message.name] = signature
    return signature


def op_names() -> list[str]:
    """Names of all registered ops, those of installed packages too, sorted."""
    entry_points.import_modules(_GROUP)
    return sorted(_messages().keys() | _signatures.keys())
