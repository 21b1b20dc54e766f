"""The record of an op: facts that passes, plans and simulated clocks need beside the signature.

Each family has a table of its ops (`graph/ops/<family>/ops.py`); users give facts of their own ops to `register_op`.
An op in no table has a record with defaults only. Reading records imports these tables, but no shape functions,
gradients or kernels. Examples:

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
    """The class of ops that the runtime treats in its own way; OTHER for most."""

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
"""classes of the nodes that decide whether, and how often, other nodes run"""
SENDS = frozenset({NodeClass.SEND, NodeClass.HOST_SEND})
RECVS = frozenset({NodeClass.RECV, NodeClass.HOST_RECV})
TRANSFERS = SENDS | RECVS
"""classes of Send and Recv nodes"""


class Calls(Enum):
    """How an op calls the functions that its attrs name."""

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
    """`cond` and `body` alternately"""
    FOR = "for"
    """`body` once per number from input 0 up, or down, to input 1 by steps of input 2"""


LOOPS = (Calls.WHILE, Calls.FOR)
"""how ops call functions on the results of the call before"""


class State(Enum):
    """The kind of state that an op creates, reads or changes."""

    VARIABLE = "variable"
    QUEUE = "queue"
    """queues, staging areas, barriers, accumulators, locks"""
    TABLE = "table"
    ITERATOR = "iterator"
    """iterators over datasets, and what these share from epoch to epoch: caches, seeds"""
    LIST = "list"
    """tensor arrays and stacks"""
    RANDOM = "random"
    """a generator of random numbers"""
    FILES = "files"
    SESSION = "session"
    """tensors kept in a session under a handle"""


class Exchange(Enum):
    """What the members of a collective exchange; the values are the kinds that `collective_time` knows."""

    ALL_REDUCE = "all_reduce"
    ALL_GATHER = "all_gather"
    REDUCE_SCATTER = "reduce_scatter"
    ALL_TO_ALL = "all_to_all"
    BROADCAST = "broadcast"
    NOTHING = "nothing"
    """it has no members: it says who they are, or what other devices have comes by transfers"""


class ReadsHandle(Enum):
    """What an op outputs of the object whose handle is its first input; its shape follows from that of the object."""

    VALUE = "value"
    """a value of the shape behind the handle"""
    ELEMENTS = "elements"
    """one value of that shape per element of input 1"""
    ROWS = "rows"
    """one row of the value per element of input 1"""
    SLICES = "slices"
    """one slice of the value per row of input 1, which has indices of its first axes"""
    SHAPE = "shape"
    """the shape itself, as a vector"""
    ITEM = "item"
    """the components of one element of a queue"""
    ITEMS = "items"
    """the components of several elements, as many as input 1 says, stacked"""
    UP_TO = "up to"
    """the components of at most so many elements, stacked"""
    KEYED = "keyed"
    """indices, keys and then the components of several elements of a barrier, stacked"""
    STACKED = "stacked"
    """all elements of a list, stacked"""
    JOINED = "joined"
    """all elements of a list, concatenated along axis 0, and their lengths"""
    LAST = "last"
    """the list without its last element, and that element"""


class WritesList(Enum):
    """What a tensor is for the list that a node writes it to."""

    ELEMENT = "element"
    ROWS = "rows"
    """each row is an element"""
    PIECES = "pieces"
    """each element has several rows"""


class Holding(Enum):
    """What an op does with the elements of a holder of tensors: a list, a stack, an array, a queue, a staging area.

    A holder is a value (a variant: a list, a map, an optional, a dataset) that the op gets or makes, or an object
    behind a handle or a name. An element may have several components. Other ops have none of these.
    """

    PUTS = "puts"
    """inputs, from `written_input` on, become an element: they are shared, not copied"""
    PUSHES = "pushes"
    """the same, and the input is also the output"""
    PUTS_COPIES = "puts copies"
    """rows, pieces or splits of inputs are copied, and become elements"""
    ADDS = "adds"
    """the first input is copied and becomes the only element, to which others are added"""
    TAKES_FIRST = "takes first"
    """the element that was put first leaves, and is the outputs"""
    TAKES_LAST = "takes last"
    """the element that was put last leaves, and is the outputs, behind the list where that is one"""
    TAKES_COPIES = "takes copies"
    """several elements leave, and are copied into the outputs"""
    READS = "reads"
    """an element is the outputs, and stays, unless the holder is an array whose elements are read once"""
    READS_COPIES = "reads copies"
    """elements are copied into an output, and stay, unless the holder is an array whose elements are read once"""
    DROPS = "drops"
    """an element leaves"""
    CLEARS = "clears"
    """all elements leave"""
    JOINS = "joins"
    """the elements of all lists that it gets are those of the one that it makes"""
    SUMS = "sums"
    """the same, but elements of different lists that have one place are added up"""
    LIKE = "like"
    """the list that it makes has elements of its own, as large as those of the one that it gets"""
    GRADIENT = "gradient"
    """it makes the array of the gradients of another array, or finds the one that was made for the same source"""
    KEEPS = "keeps"
    """its inputs are kept until the step has ended, and longer"""


class Updates(Enum):
    """What an op changes its first input by, a variable."""

    GRADIENT = "gradient"
    """the step of an optimizer, of which one of its inputs is the gradient"""
    VALUE = "value"
    """a value that is assigned, added, subtracted ..., to the whole or to rows"""


class Facts(TypedDict, total=False):
    """Fields of `OpRecord`, as a row of a family gives them; missing ones have the defaults."""

    node_class: NodeClass
    calls: Calls
    state: State
    handle_shape_attr: str
    key_shape_input: int
    hides_shape: bool
    asks_values: bool
    reads_handle: ReadsHandle
    element_shape_input: int
    writes_list: WritesList
    written_input: int
    holding: Holding
    waits: bool
    names_functions: bool
    waits_for_files: bool
    takes_long: bool
    is_product: bool
    passes_on: bool
    regroups: bool
    converts_lists: bool
    is_view: bool
    in_place: bool
    takes_over: bool
    is_flat: bool
    is_flat_in_functions: bool
    is_placeholder: bool
    must_be_fed: bool
    keeps_by_node: bool
    keeps_first_axis: bool
    is_collective: bool
    updates: Updates
    indices_input: int
    rows_input: int
    finds_distinct: bool
    reads_shape: bool
    is_additive: bool
    linear_inputs: int
    sums_segments: bool
    keeps_elements: bool
    rows_given: int
    normalises_batch: bool
    merges_by: str
    fills: bool
    exchange: Exchange
    is_test_only: bool


FactsByOp = Mapping[str, Facts]
"""facts by op"""


@dataclass(frozen=True, slots=True)
class OpRecord:
    """The facts about one op."""

    name: str
    family: str = ""
    """the folder of its shape function and gradient in `graph/ops`, of its kernel and cost in `devices/kernels`"""
    node_class: NodeClass = NodeClass.OTHER
    calls: Calls | None = None
    """how it calls functions; None if it calls none"""
    state: State | None = None
    handle_shape_attr: str = ""
    """the attr with the shape, or shapes, of the values behind the handle that it makes"""
    key_shape_input: int = -1
    """the input that has the shape of the keys of the table that it makes; other tables have scalar ones"""
    hides_shape: bool = False
    """TensorFlow's import does not look through the handle that it makes"""
    asks_values: bool = False
    """its shape function reads values of inputs that are no integers"""
    reads_handle: ReadsHandle | None = None
    element_shape_input: int = -1
    """the input that states the shape of the elements of the list that it makes"""
    writes_list: WritesList | None = None
    written_input: int = -1
    """the input that it writes to the list which it outputs, or from which on it puts inputs into a holder"""
    holding: Holding | None = None
    """what it does with the elements of a holder"""
    waits: bool = False
    """deferred: its outputs may come after its kernel has returned, when another node or step has done something"""
    names_functions: bool = False
    """the functions in its attrs are called by its kernel, or by whoever pulls from the dataset that it makes"""
    waits_for_files: bool = False
    """its kernel waits for files and does not touch the state of the device, so it may run in a worker thread"""
    takes_long: bool = False
    """its kernel is slow (a matrix product, a sort): tensors that are ready before it are sent before it"""
    is_product: bool = False
    """a product of matrices or a convolution: the arithmetic per element of its output grows with its inputs"""
    passes_on: bool = False
    """its output is its input, of any type"""
    regroups: bool = False
    """its outputs are its inputs, one by one"""
    converts_lists: bool = False
    """regroups tensors between lists and single arguments; an identity if inputs and outputs are declared alike"""
    is_view: bool = False
    """its outputs share the buffer of its first input, and it costs no time"""
    in_place: bool = False
    """elementwise: TensorFlow's kernels of it write the first output into an input of equal type and size that nobody
    else needs (they ask for one with `OpKernelContext::forward_input_or_allocate_output`)"""
    takes_over: bool = False
    """its second input becomes the content of the variable behind its first input, without a copy"""
    is_flat: bool = False
    """not differentiable: its gradient is None (tf.no_gradient)"""
    is_flat_in_functions: bool = False
    """not differentiable for TensorFlow's C++ runtime, which computes gradients of functions and has its own list"""
    is_placeholder: bool = False
    """a placeholder, with or without a default value"""
    must_be_fed: bool = False
    """a placeholder without a default value"""
    keeps_by_node: bool = False
    """its kernel keeps a counter, a generator or seeds for its node, as those of `State.RANDOM` do"""
    keeps_first_axis: bool = False
    """axis 0 of its outputs is as long as axis 0 of its first input"""
    is_collective: bool = False
    """a collective op that its arguments do not reveal (`OpSignature.is_collective` is complete)"""
    updates: Updates | None = None
    """how it changes the variable that is its first input; None if it changes none"""
    indices_input: int = -1
    """the input that says which rows of the variable it changes; -1 if it changes all"""
    rows_input: int = -1
    """the input with a row for each of these indices"""
    finds_distinct: bool = False
    """its outputs are the distinct values of its first input, and where they are"""
    reads_shape: bool = False
    """its outputs depend on the shapes of its inputs, not on their values"""
    is_additive: bool = False
    """its first output is the sum of its inputs, or a rearrangement of the first: that of a sum is the sum of those"""
    linear_inputs: int = 0
    """in each of how many of its first inputs its output is linear while others stay; -1: in all of them together"""
    keeps_elements: bool = False
    """its output has the elements of its first input in the same order, in another shape"""
    rows_given: int = -1
    """the input with the shape of its output, whose axis 0 is that of another input"""
    sums_segments: bool = False
    """adds up the rows of its first input that have equal numbers in its second"""
    normalises_batch: bool = False
    """normalises by mean and variance over axis 0, unless its attr `is_training` is false"""
    merges_by: str = ""
    """how its results for parts of a tensor make the one for the whole: a reduction, or "" if they do not"""
    fills: bool = False
    """all elements of its output are its second input"""
    exchange: Exchange | None = None
    """what it exchanges with the other members; None of ops that are no collectives, or that nobody can time"""
    is_test_only: bool = False
    """exists only in TensorFlow's tests"""

    @property
    def is_per_node(self) -> bool:
        """Whether each node has a kernel of its own, which goes on where it was: also in each call of a function."""
        return self.state is State.RANDOM or self.keeps_by_node

    @property
    def is_send(self) -> bool:
        """Whether it sends a tensor to a rendezvous."""
        return self.node_class in SENDS

    @property
    def is_recv(self) -> bool:
        """Whether it receives a tensor from a rendezvous."""
        return self.node_class in RECVS

    @property
    def is_transfer(self) -> bool:
        """Whether it is a Send or a Recv of any kind."""
        return self.node_class in TRANSFERS


_records: dict[str, OpRecord] = {}


def record_of(op: str) -> OpRecord:
    """The record of an op; of an unknown one, such as a function, the defaults."""
    record = _records.get(op)
    if record is None:
        family, facts = _rows().get(op, ("", Facts()))
        record = OpRecord(op, family, **facts)
        if family:
            _records[op] = record
    return record


def add_record(op: str, facts: Facts) -> None:
    """Sets the facts of a user's op, before its signature is made."""
    _records[op] = OpRecord(op, **facts)


def families() -> dict[str, tuple[str, ...]]:
    """The ops of each family; families and ops are sorted."""
    ops: dict[str, list[str]] = {family: [] for family in family_names()}
    for op, (family, _) in _rows().items():
        ops[family].append(op)
    return {family: tuple(sorted(names)) for family, names in ops.items()}


@cache
def family_names() -> tuple[str, ...]:
    """Names of all families, sorted: the folders beside this file."""
    folder = [str(Path(__file__).parent)]
    return tuple(sorted(module.name for module in iter_modules(folder) if module.ispkg))


@cache
def _rows() -> dict[str, tuple[str, Facts]]:
    """Family and facts by op; AlreadyExistsError for an op in two families."""
    rows_by_op: dict[str, tuple[str, Facts]] = {}
    for family in family_names():
        rows: FactsByOp = import_module(f"{__package__}.{family}.ops").OPS
        for op, facts in rows.items():
            if op in rows_by_op:
                other = rows_by_op[op][0]
                raise AlreadyExistsError(f"op {op!r} is in the families {other!r} and {family!r}", op=op)
            rows_by_op[op] = family, facts
    return rows_by_op
