"""The table of kernels: op name -> factory that binds a node's attrs and returns the function that computes it.

Flows in: registrations by the family modules beside this file. Flows out: `lookup`, used when a plan compiles. Always
holds: one factory per op; a factory runs once per node, the function it returns runs once per step and gets one value
(numpy array or numpy scalar) per data input. It returns None for no outputs, the bare value for one, a tuple for more.
What a kernel gives that was registered from outside of this package is checked in every step (`is_ours`).

To add an op, write its kernel in a module of its family here; where the default (a flop per output element) is wrong,
its cost in the module `*_costs` beside it; its shape function and gradient in the same family of `graph/ops`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from ...errors import AlreadyExistsError, PartitaError
from ...graph.dtypes import DataType

if TYPE_CHECKING:
    from ..state import DeviceState

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


Factory = Callable[[Construction], Kernel]

_FACTORIES: dict[str, Factory] = {}
_DEFERRED: set[str] = set()
_WAITING: set[str] = set()
_OURS: dict[str, Factory] = {}
_PACKAGE = __name__.removesuffix("devices.kernels.registry")


def kernel(*ops: str) -> Callable[[Factory], Factory]:
    """Registers the decorated factory for each of `ops`; AlreadyExistsError if one is taken."""

    ours = _is_called_by_us()

    def register(factory: Factory) -> Factory:
        for op in ops:
            if op in _FACTORIES:
                raise AlreadyExistsError(f"op {op!r} has a kernel already; remove one of the two registrations", op=op)
            _FACTORIES[op] = factory
            if ours:
                _OURS[op] = factory
        return factory

    return register


def _is_called_by_us() -> bool:
    """Whether the module that registers a kernel, the first outside of this one on the stack, is of this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__") == __name__:
        frame = frame.f_back
    return str(frame.f_globals.get("__name__")).startswith(_PACKAGE)


def is_ours(op: str) -> bool:
    """Whether the kernel of `op` was registered by this package, whose tests see to it that it keeps its word."""
    return op in _OURS and _OURS[op] is lookup(op)


def simple(op: str, function: Kernel) -> None:
    """Registers `function` itself as the kernel of an op whose attrs do not change what is computed."""
    kernel(op)(lambda node: function)


def waits_for_files(*ops: str) -> None:
    """Says that the kernels of `ops` wait for the file system and leave the device's state alone.

    They may run in a worker thread, from the first time on, although the ops are declared as stateful.
    """
    _WAITING.update(ops)


def is_waiting_for_files(op: str) -> bool:
    """Whether the kernel of `op` may wait long for the file system."""
    return op in _WAITING


class Call(Protocol):
    """One run of a node whose outputs come later. Exactly one of `done` and `fail` ends it, from whatever task or step.

    A call whose step ends first is cancelled: the callbacks given to `on_cancel` are called, and what `done` or `fail`
    say after that is not heard.
    """

    step: object
    """the step it belongs to, to compare by identity"""

    def done(self, *outputs: Any) -> None:  # Any: tensors of any type
        """The outputs are there."""

    def fail(self, error: PartitaError) -> None:
        """The node has failed, and the step with it."""

    def after(self, seconds: float, callback: Callable[[], None]) -> None:
        """Has `callback` called when so much time has passed, unless the step ends before."""

    def on_cancel(self, callback: Callable[[], None]) -> None:
        """Has `callback` called if the step ends before the call, so that nobody keeps waiting for it."""


Start = Callable[..., None]
"""takes a `Call` and one value per data input, begins, and returns at once; the call may be done before that"""
StartFactory = Callable[[Construction], Start]


def deferred_kernel(*ops: str) -> Callable[[StartFactory], StartFactory]:
    """Registers the decorated factory for ops that may have to wait for other steps: queues, barriers.

    Such a kernel never blocks: it keeps the call until somebody else, the kernel of another node perhaps, ends it.
    """

    def register(factory: StartFactory) -> StartFactory:
        kernel(*ops)(factory)
        _DEFERRED.update(ops)
        return factory

    return register


def is_deferred(op: str) -> bool:
    """Whether the outputs of an op may come later than its kernel returns."""
    _register_families()
    return op in _DEFERRED


def outputs(values: Sequence[Any]) -> Any:
    """The kernel result for a variable number of outputs: nothing, the bare value, or a tuple."""
    if len(values) == 1:
        return values[0]
    return tuple(values) if values else None


@cache
def _register_families() -> None:
    """Imports the families on the first look-up: whoever never runs or infers anything does not wait for them."""
    import_module(".families", __package__)


def lookup(op: str) -> Factory | None:
    """The factory of `op`, or None when Partita has no kernel for it."""
    _register_families()
    return _FACTORIES.get(op)


def registered_ops() -> frozenset[str]:
    """Names of all ops that have a kernel."""
    _register_families()
    return frozenset(_FACTORIES)
