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
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TypedDict

from ...errors import AlreadyExistsError
from .roles import (
    CONTROL_FLOW as CONTROL_FLOW,
    LOOPS as LOOPS,
    RECVS as RECVS,
    SENDS as SENDS,
    TRANSFERS as TRANSFERS,
    Calls as Calls,
    Exchange as Exchange,
    Holding as Holding,
    NodeClass as NodeClass,
    ReadsHandle as ReadsHandle,
    State as State,
    Updates as Updates,
    WritesList as WritesList,
)


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
    clock_only: str
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
    clock_only: str = ""
    """what it stands for, where that has a time and no values; empty for all others"""
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
