"""One record per op: what passes, plans and clocks ask of an op, beside its signature.

Flows in: the rows of the families (`graph/ops/<family>/ops.py`), and what users say of their own ops. Flows out: an
`OpRecord` by name, the same object each time. Always holds: an op that no row names has a record too, in which nothing
is said of it; asking for a record loads rows, never shape functions, gradients or kernels.

    Switch       family control, node class SWITCH, is_view
    QueueSizeV2  family queues, state QUEUE
    Foo1         family testing, is_test_only
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TypedDict

from ...errors import AlreadyExistsError


class NodeClass(Enum):
    """What the runtime treats specially about an op; OTHER for most."""

    SWITCH = auto()
    MERGE = auto()
    ENTER = auto()
    EXIT = auto()
    NEXT_ITERATION = auto()
    LOOP_COND = auto()
    CONTROL_TRIGGER = auto()
    SEND = auto()
    HOST_SEND = auto()
    RECV = auto()
    HOST_RECV = auto()
    CONSTANT = auto()
    VARIABLE = auto()
    IDENTITY = auto()
    GET_SESSION_HANDLE = auto()
    GET_SESSION_TENSOR = auto()
    DELETE_SESSION_TENSOR = auto()
    METADATA = auto()
    SCOPED_ALLOCATOR = auto()
    COLLECTIVE = auto()
    ARG = auto()
    RETVAL = auto()
    NO_OP = auto()
    OTHER = auto()


CONTROL_FLOW = frozenset({NodeClass.SWITCH, NodeClass.MERGE, NodeClass.ENTER, NodeClass.EXIT, NodeClass.NEXT_ITERATION})
"""classes of the nodes that steer which others run, and how often"""
SENDS = frozenset({NodeClass.SEND, NodeClass.HOST_SEND})
RECVS = frozenset({NodeClass.RECV, NodeClass.HOST_RECV})
TRANSFERS = SENDS | RECVS
"""classes of the nodes that hand a tensor to a rendezvous, or take one from it"""


class Calls(Enum):
    """How an op runs the functions that its attrs name."""

    CALL = "call"
    """the function of attr `f`, whose nodes may be on many devices"""
    REMOTE = "remote"
    """the function of attr `f`, on the device that input 0 names"""
    MAP = "map"
    """the function of attr `f`, once per row of its inputs"""
    GRADIENT = "gradient"
    """the gradient of the function of attr `f`"""
    IF = "if"
    """`then_branch` or `else_branch`"""
    CASE = "case"
    """one of `branches`"""
    WHILE = "while"
    """`cond` and `body`, in turns"""


class State(Enum):
    """What an op makes, reads or changes that outlives its inputs and outputs."""

    VARIABLE = "variable"
    QUEUE = "queue"
    """queues, staging areas, barriers, accumulators, locks"""
    TABLE = "table"
    LIST = "list"
    """tensor arrays and stacks"""
    RANDOM = "random"
    """a generator of random numbers"""
    FILES = "files"
    SESSION = "session"
    """tensors kept in a session under a handle"""


class Facts(TypedDict, total=False):
    """What a row says of an op; see `OpRecord`, which has the same fields. What is left out has its default there."""

    node_class: NodeClass
    calls: Calls
    state: State
    waits: bool
    waits_for_files: bool
    takes_long: bool
    passes_on: bool
    regroups: bool
    converts_lists: bool
    is_view: bool
    is_flat: bool
    is_flat_in_functions: bool
    is_placeholder: bool
    must_be_fed: bool
    keeps_first_axis: bool
    is_collective: bool
    is_test_only: bool


Rows = Mapping[str, Facts]
"""op -> what its family says of it"""


@dataclass(frozen=True, slots=True)
class OpRecord:
    """What is known of an op by its name."""

    name: str
    family: str = ""
    """the folder of its shape function and gradient in `graph/ops`, of its kernel and cost in `devices/kernels`"""
    node_class: NodeClass = NodeClass.OTHER
    calls: Calls | None = None
    """how it runs functions, None for ops that run none"""
    state: State | None = None
    waits: bool = False
    """its outputs may come later than its kernel returns, when another node or step has done something"""
    waits_for_files: bool = False
    """its kernel waits for the file system and leaves the state of the device alone: it may run in a worker thread"""
    takes_long: bool = False
    """its kernel computes so long that what is ready before should not wait to be sent with what it makes"""
    passes_on: bool = False
    """its output is its input, whatever that is"""
    regroups: bool = False
    """its outputs are its inputs, one by one"""
    converts_lists: bool = False
    """regroups its inputs as the outputs declare it, and is nothing but an identity if both are declared alike"""
    is_view: bool = False
    """it takes no time, and its outputs share the buffer of its first input"""
    is_flat: bool = False
    """nothing flows back through it: its outputs do not change, or jump, with its inputs (tf.no_gradient)"""
    is_flat_in_functions: bool = False
    """TensorFlow's runtime, which undoes functions op by op, knows it as flat; not the same list as that of Python"""
    is_placeholder: bool = False
    """stands for a tensor that is fed"""
    must_be_fed: bool = False
    """a placeholder without a value of its own"""
    keeps_first_axis: bool = False
    """its outputs have as many of the first axis as its first input"""
    is_collective: bool = False
    """exchanges tensors with other devices, which its arguments do not tell; see `OpSignature.is_collective`"""
    is_test_only: bool = False
    """only TensorFlow's tests have it"""

    @property
    def is_send(self) -> bool:
        """Whether it hands a tensor to a rendezvous."""
        return self.node_class in SENDS

    @property
    def is_recv(self) -> bool:
        """Whether it takes a tensor from a rendezvous."""
        return self.node_class in RECVS

    @property
    def is_transfer(self) -> bool:
        """Whether it is one end of a transfer between devices."""
        return self.node_class in TRANSFERS


_records: dict[str, OpRecord] = {}


def record_of(op: str) -> OpRecord:
    """The record of an op, of an unknown one too."""
    found = _records.get(op)
    if found is None:
        family, facts = _rows().get(op, ("", Facts()))
        found = OpRecord(op, family, **facts)
        if family:
            _records[op] = found
    return found


def add_record(op: str, facts: Facts) -> None:
    """Says something of an op that no family has: one of a user's own, before its signature is made."""
    _records[op] = OpRecord(op, **facts)


def families() -> dict[str, tuple[str, ...]]:
    """The ops of every family, both in alphabetical order."""
    ops: dict[str, list[str]] = {family: [] for family in family_names()}
    for op, (family, _) in _rows().items():
        ops[family].append(op)
    return {family: tuple(sorted(names)) for family, names in ops.items()}


@cache
def family_names() -> tuple[str, ...]:
    """Names of all families, which are the folders beside this file, in alphabetical order."""
    folder = [str(Path(__file__).parent)]
    return tuple(sorted(module.name for module in iter_modules(folder) if module.ispkg))


@cache
def _rows() -> dict[str, tuple[str, Facts]]:
    """Family and facts of every op that a family has; AlreadyExistsError for one that two have."""
    found: dict[str, tuple[str, Facts]] = {}
    for family in family_names():
        rows: Rows = import_module(f"{__package__}.{family}.ops").OPS
        for op, facts in rows.items():
            if op in found:
                raise AlreadyExistsError(f"op {op!r} is in the families {found[op][0]!r} and {family!r}", op=op)
            found[op] = family, facts
    return found
