"""The table of kernels: op name -> factory that binds a node's attrs and returns the function that computes it.

A factory runs once per node, when a plan compiles. The function it returns runs once per step and gets one value
(numpy array or numpy scalar) per data input. It returns None for no outputs, the bare value for one, a tuple for more.
The results of kernels that other packages registered are checked in every step (`is_built_in`).

To add an op, write its kernel in a module of its family here; where the default (a flop per output element) is wrong,
its cost in the module `*_costs` beside it; its shape function and gradient in the same family of `graph/ops`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ...errors import FailedPreconditionError, InvalidArgumentError, PartitaError
from ...graph.device_name import parse_full_name
from ...graph.dtypes import DataType
from ...graph.ops.op_table import OpTable
from ...graph.ops.own_kernels import add_own_kernel
from ...graph.ops.record import record_of
from ...graph.ops.registry import find_op
from .functions import NamedFunction

if TYPE_CHECKING:
    from ..state import DeviceState
    from .functions import Function, FunctionProvider, Scope
    from .step_state import KernelStep

# What a kernel takes and returns is decided by the op's signature at run time, so it cannot be typed statically.
Kernel = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Construction:
    """What a factory may know of the node it builds a kernel for.

    `attrs` hold decoded values with all defaults filled in; the types are the flattened ones (references marked);
    `state` is what the node's device keeps from step to step.
    """

    name: str
    op: str
    attrs: Mapping[str, Any]  # decoded attr values: their type depends on the attr
    input_types: tuple[DataType, ...]
    output_types: tuple[DataType, ...]
    device: str
    state: DeviceState
    functions: FunctionProvider | None = None
    """those that the node may name; None where there are none to call"""

    def function(self, attr: str) -> NamedFunction:
        """The function that an attr names; FailedPreconditionError where there are none to call."""
        if self.functions is None:
            raise FailedPreconditionError(f"attr {attr!r} names a function, but nodes here cannot call any")
        return NamedFunction(self.attrs[attr], self.functions)


Factory = Callable[[Construction], Kernel]

BoundFactory = Callable[..., Kernel]
"""takes a `Construction` and the values of some inputs"""


@dataclass(frozen=True, slots=True)
class BoundForm:
    """The factory for nodes of an op whose inputs at `ports` are the same in every step."""

    ports: tuple[int, ...]
    factory: BoundFactory


_FACTORIES: OpTable[Factory] = OpTable("a kernel", __package__, via=__name__)
_BOUND_FORMS: dict[str, list[BoundForm]] = {}


class KernelsByKind:
    """A factory that leaves the work to the one for the kind of the node's device."""

    def __init__(self, factories: Mapping[str, Factory]) -> None:
        self.factories = dict(factories)

    def __call__(self, node: Construction) -> Kernel:
        """The kernel of a node; InvalidArgumentError if there is none for the kind of its device."""
        kind = parse_full_name(node.device).type or ""
        if kind not in self.factories:
            kinds = ", ".join(self.factories)
            raise InvalidArgumentError(
                f"op {node.op!r} has no kernel for devices of kind {kind}, only for {kinds}; place the node there"
            )
        return self.factories[kind](node)


def kernel(*ops: str, kinds: Collection[str] = (), host_args: Collection[str] = ()) -> Callable[[Factory], Factory]:
    """Registers the decorated factory for each of `ops`; AlreadyExistsError if one has a kernel.

    Ops of your own say where: `kinds` are the kinds of devices ("CPU", "NPU") that have this kernel, every kind by
    default, and `host_args` names the arguments that it expects in host memory. An op may have several kernels, for
    different kinds. TensorFlow's ops are placed as its own kernels are, with neither.

    Raises InvalidArgumentError for an op that is not registered, or that waits and so needs a `deferred_kernel`.
    """
    return _adding(ops, kinds, host_args, deferred=False)


F = TypeVar("F", bound=Callable[..., Any])


def _adding(
    ops: Sequence[str], kinds: Collection[str], host_args: Collection[str], *, deferred: bool
) -> Callable[[F], F]:
    def register(factory: F) -> F:
        for op in ops:
            _add(op, factory, kinds, host_args, deferred=deferred)
        return factory

    return register


def _add(op: str, factory: Factory, kinds: Collection[str], host_args: Collection[str], *, deferred: bool) -> None:
    _check_sort(op, deferred)
    if kinds or host_args:
        add_own_kernel(op, kinds, host_args)
    present = _FACTORIES.get(op) if kinds else None
    if isinstance(present, KernelsByKind):
        present.factories.update(dict.fromkeys(kinds, factory))
    else:
        _FACTORIES.add(op, KernelsByKind(dict.fromkeys(kinds, factory)) if kinds else factory)


def _check_sort(op: str, deferred: bool) -> None:
    """InvalidArgumentError unless the op is known, and its kernel deferred exactly if its record says `waits`."""
    record = record_of(op)
    if not record.family and find_op(op) is None:
        raise InvalidArgumentError(f"op {op!r} is not registered; call register_op before its kernel", op=op)
    if deferred and not record.waits:
        raise InvalidArgumentError(
            f"op {op!r} does not wait, so that its kernel returns the outputs: register a kernel, or an op of your own "
            "with waits=True",
            op=op,
        )
    if record.waits and not deferred:
        raise InvalidArgumentError(
            f"op {op!r} waits for other nodes or steps (waits=True), so that its kernel gets a call to end later: "
            "register a deferred_kernel",
            op=op,
        )


def is_built_in(op: str) -> bool:
    """Whether this package registered the kernel of `op`; the results of other kernels are checked in every step."""
    return _FACTORIES.is_built_in(op)


def simple(op: str, function: Kernel) -> None:
    """Registers `function` itself as the kernel of an op whose attrs do not change what is computed."""
    kernel(op)(lambda node: function)


def binding(op: str, *ports: int) -> Callable[[BoundFactory], BoundFactory]:
    """Registers a further factory of a stateless op, for nodes whose inputs at `ports` (-1: the last) are constants.

    It gets the node and these values; its kernel gets the other inputs and does what the ordinary one does, errors
    included, without working out again what the constants mean. Where the factory raises, the node has the
    ordinary kernel, which reports the error in the step. Of several the first that fits is taken.
    """

    def register(factory: BoundFactory) -> BoundFactory:
        _BOUND_FORMS.setdefault(op, []).append(BoundForm(ports, factory))
        return factory

    return register


def bound_forms(op: str) -> Sequence[BoundForm]:
    """What `binding` registered for `op`; nothing if the op's kernel was replaced."""
    _FACTORIES.load_modules_with("binding(", op)  # they need not be those of the ordinary kernels
    return _BOUND_FORMS.get(op, ()) if _FACTORIES.is_built_in(op) else ()


T = TypeVar("T")


class Call(Protocol):
    """One run of a node whose outputs come later. Exactly one call of `done` or `fail` ends it, from any task or step.

    A call whose step ends first is cancelled: the callbacks given to `on_cancel` are called, and later calls of `done`
    and `fail` are ignored.
    """

    @property
    def step(self) -> KernelStep:
        """The step it belongs to; its `state` is what kernels keep until it ends."""

    @property
    def is_ended(self) -> bool:
        """Whether it was ended by `done` or `fail`, or cancelled: then a kernel that keeps it can forget it."""

    @property
    def iterations(self) -> tuple[int, ...]:
        """The numbers of the iterations of the loops around, the outermost first, from 0."""

    def done(self, *outputs: Any) -> None:  # Any: tensors of any type
        """Ends the call with these outputs."""

    def fail(self, error: PartitaError) -> None:
        """Ends the call, and fails its step, with this error."""

    def when_stuck(self, callback: Callable[[], None]) -> None:
        """Calls `callback` if the call has not ended when nothing else of its step can go on.

        For a call that only nodes of its own step can end. Nothing can go on when no kernel runs, no message is on its
        way, and all open calls of the step wait like this one, or are functions and loops with such calls in them.
        """

    def compute(self, work: Callable[[], T], then: Callable[[T], None], *, in_thread: bool) -> None:
        """Calls `then` with what `work` returns, unless the step ends before; what takes long belongs in a thread.

        An exception of `work` or `then` fails the step.
        """

    def after(self, seconds: float, callback: Callable[[], None]) -> None:
        """Calls `callback` after `seconds`, unless the step ends before."""

    def on_cancel(self, callback: Callable[[], None]) -> None:
        """Calls `callback` if the step ends before the call."""

    def pause(self, resume: Callable[[], None]) -> bool:
        """Whether other tasks must run now, before a long computation goes on: then `resume` is called after them.

        It is never called if the step ends before.
        """

    def function(self, function: NamedFunction, scope: Scope) -> Function:
        """A function, to be called on behalf of this call.

        Stateful random ops in the function go on, within one scope, where they were, and begin anew in another one.
        """


Start = Callable[..., None]
"""takes a `Call` and one value per data input, begins, and returns at once; the call may be done before that"""
StartFactory = Callable[[Construction], Start]


def deferred_kernel(
    *ops: str, kinds: Collection[str] = (), host_args: Collection[str] = ()
) -> Callable[[StartFactory], StartFactory]:
    """Registers the decorated factory for ops that may have to wait for other steps: queues, barriers.

    They are the ops whose record says `waits`, which ops of your own say in `register_op(..., waits=True)`.
    Such a kernel never blocks: it keeps the call until another kernel, perhaps in another step, ends it. What nodes of
    one step share is in `call.step.state` (`step_state`). `kinds` and
    `host_args` are those of `kernel`.
    """
    return _adding(ops, kinds, host_args, deferred=True)


def is_deferred(op: str) -> bool:
    """Whether the outputs of an op may come later than its kernel returns."""
    return record_of(op).waits


def outputs(values: Sequence[Any]) -> Any:
    """The kernel result for a variable number of outputs: nothing, the bare value, or a tuple."""
    if len(values) == 1:
        return values[0]
    return tuple(values) if values else None


def lookup(op: str, kind: str | None = None) -> Factory | None:
    """The factory of `op`, on devices of one kind if that is given; None when Partita has no kernel for it."""
    factory = _FACTORIES.get(op)
    if kind is not None and isinstance(factory, KernelsByKind):
        return factory.factories.get(kind)
    return factory


def table() -> OpTable[Factory]:
    """All factories, by op."""
    return _FACTORIES


def registered_ops() -> frozenset[str]:
    """Names of all ops that have a kernel."""
    return frozenset(_FACTORIES)
