"""Kernels for nodes: looks up the function that computes a node, once for all nodes that can share it.

    "a" Neg(float), "b" Neg(float)      one kernel, which both call
    "c" RandomUniform                   a kernel of its own, with the generator of node "c"
    "d" PartitionedCall of f            what calls f: `CallResolver.kernel` gives it

Nodes of a stateless op with the same properties share one kernel on one device. Kernels from outside of this package
are checked (`output_checks`). Ops without a kernel are collected, so that one error names them all. Transfers, control
flow and arguments have no kernel: the executor carries them out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Protocol

from ...devices.kernels.blas_threads import LIMIT
from ...devices.kernels.checks import unfed
from ...devices.kernels.freed_memory import keep_freed_memory
from ...devices.kernels.op_cost import is_matrix
from ...devices.kernels.registry import Construction, Kernel, Start, is_built_in, is_deferred, lookup
from ...errors import InvalidArgumentError, PartitaError, UnimplementedError, of_kernel
from ...graph.dtypes import dtype_name, from_numpy, numpy_dtype
from ...graph.library.calls import calls_functions
from ...graph.ops.record import record_of
from .call_sites import NameInCall
from .output_checks import checked_kernel, checked_start

if TYPE_CHECKING:
    from ...devices.kernels.functions import FunctionProvider
    from ...devices.kernels.registry import BoundForm
    from ...devices.state import DeviceState
    from ...graph.dtypes import Array
    from ...graph.library.function_library import FunctionLibrary
    from ...graph.ops.properties import NodeProperties

_NAMED_IN_ERROR = 10


def scalar_form(value: Array) -> Any:  # Any: see Binder.constant
    """Zero-dimensional numbers as numpy scalars, which compute ten times faster; everything else as it is."""
    return value[()] if value.ndim == 0 and value.dtype != object else value


def is_shared(properties: NodeProperties) -> bool:
    """Whether nodes with these properties share one kernel: not if it has state or keeps something for its node, or
    names its node in an error.

    Nor if it names functions: those of another graph may have the same names.
    """
    record = properties.op_def.record
    return not (properties.op_def.is_stateful or record.is_per_node or record.must_be_fed or record.names_functions)


def has_kernel(properties: NodeProperties, library: FunctionLibrary | None) -> bool:
    """Whether a node that the executor does not carry out itself can be computed: by a kernel, or by calls.

    `library` has the functions that it may call. An unfed placeholder has a kernel that says so.
    """
    if properties.op_def.record.must_be_fed or lookup(properties.op_def.name) is not None:
        return True
    return library is not None and calls_functions(properties, library)


class CallResolver(Protocol):
    """Resolves nodes that call functions for a `Binder`: compiled functions belong to `running`."""

    @property
    def library(self) -> FunctionLibrary:
        """The functions that nodes may call."""

    def is_deferred(self, node: NodeProperties, device: str) -> bool:
        """Whether the outputs of a node that calls functions come later than its kernel returns."""

    def kernel(self, name: str, node: NodeProperties, device: str, site: str) -> Kernel | Start:
        """The kernel of a node that calls functions, or what starts it if it is deferred.

        The node is in a function called from `site`, or in the graph if that is "".
        """

    def for_kernels(self) -> FunctionProvider:
        """The same functions, as deferred kernels call them."""


class Binder:
    """Makes the kernels of one device and keeps them; it lives as long as the device, so that plans share them."""

    def __init__(self, device: str, state: DeviceState) -> None:
        self.device = device
        self.state = state
        self.functions: CallResolver | None = None
        self._shared: dict[NodeProperties, Kernel] = {}
        self._constructions: dict[NodeProperties, Construction] = {}
        self.missing: list[tuple[str, str]] = []
        keep_freed_memory()

    def calling(self, functions: CallResolver | None) -> Binder:
        """A binder whose nodes may call these functions; it shares device, state and kernels with this one."""
        other = copy(self)
        other.functions = functions
        return other

    def within(self, site: str, function: str) -> Binder:
        """A binder for the nodes of a function called from `site`; it shares device and kernels with this one."""
        other = copy(self)
        other.state = self.state.within(site, function)
        return other

    def kernel(self, name: str, properties: NodeProperties) -> Kernel:
        """The kernel of a node.

        A missing one is noted for `check_complete` and a stand-in returned. Raises what the factory raises.
        """
        shared = self._shared.get(properties)
        if shared is not None:
            return shared
        if isinstance(name, NameInCall):
            return name.site.binder.kernel(str(name), properties)
        op, factory = properties.op_def.name, lookup(properties.op_def.name)
        if not has_kernel(properties, None if self.functions is None else self.functions.library):
            self.missing.append((name, op))
            return _stand_in
        if properties.op_def.record.must_be_fed:
            return _unfed(name, properties)
        if factory is None:
            assert self.functions is not None  # or there is no kernel
            try:
                return self.functions.kernel(name, properties, self.device, self.state.site)
            except PartitaError as error:
                raise error.located(node=name, op=op, device=self.device) from error.__cause__
        try:
            kernel = factory(self._construction(name, properties))
        except PartitaError as error:
            raise error.located(node=name, op=op, device=self.device) from None
        if is_matrix(op):
            LIMIT.look_up_libraries()
        if not is_built_in(op):
            kernel = (checked_start if is_deferred(op) else checked_kernel)(kernel, properties)
        if is_shared(properties):
            self._shared[properties] = kernel
        return kernel

    def bound_kernel(self, properties: NodeProperties, form: BoundForm, values: Sequence[Any]) -> Kernel | None:
        """The kernel of a node for its other inputs, or None where only the ordinary one will do; see `binding`.

        `values` are those of the inputs that `form` names. The node is stateless, so that its name does not matter.
        """
        construction = self._constructions.get(properties)
        if construction is None:
            construction = self._constructions[properties] = self._construction("", properties)
        try:
            return form.factory(construction, *values)
        except (PartitaError, ArithmeticError, LookupError, TypeError, ValueError):
            return None

    def _construction(self, name: str, properties: NodeProperties) -> Construction:
        return Construction(
            name=name,
            op=properties.op_def.name,
            attrs=properties.attrs,
            input_types=properties.input_types,
            output_types=properties.output_types,
            device=self.device,
            state=self.state,
            functions=None if self.functions is None else self.functions.for_kernels(),
        )

    def is_deferred(self, properties: NodeProperties) -> bool:
        """Whether the outputs of a node come later than its kernel returns; then `kernel` gives what starts it."""
        if is_deferred(properties.op_def.name):
            return True
        if self.functions is None or not calls_functions(properties, self.functions.library):
            return False
        return self.functions.is_deferred(properties, self.device)

    def constant(self, name: str, properties: NodeProperties) -> Any:  # Any: only the graph knows the element type
        """The value of a Const node, in the form with which kernels are fastest.

        Raises InvalidArgumentError when it cannot be read or is of another type than the node says.
        """
        try:
            value: Array = properties.attrs["value"]
        except (PartitaError, MemoryError) as error:
            raise of_kernel(properties.op, error).located(node=name, op=properties.op, device=self.device) from None
        declared = properties.output_types[0]
        if value.dtype != numpy_dtype(declared):
            actual = dtype_name(from_numpy(value.dtype))
            raise InvalidArgumentError(
                f"Type mismatch between value ({actual}) and dtype ({dtype_name(declared)})",
                node=name,
                op=properties.op,
                device=self.device,
            )
        return scalar_form(value)


def check_complete(binders: Iterable[Binder]) -> None:
    """Raises one UnimplementedError for all nodes without a kernel that were asked for since the last call."""
    missing: list[tuple[str, str]] = []
    for binder in binders:
        missing += binder.missing
        binder.missing.clear()
    if not missing:
        return
    _check_has_values(missing)
    ops = ", ".join(sorted({op for _, op in missing}))
    named = ", ".join(f"{name!r} ({op})" for name, op in missing[:_NAMED_IN_ERROR])
    more = f" and {len(missing) - _NAMED_IN_ERROR} more" if len(missing) > _NAMED_IN_ERROR else ""
    node, op = missing[0]
    raise UnimplementedError(
        f"no kernel for {ops}: needed by {named}{more}; feed what they would compute, or only partition and simulate",
        node=node,
        op=op,
    )


def _check_has_values(missing: Iterable[tuple[str, str]]) -> None:
    """UnimplementedError for the first node that is there to be timed alone."""
    for node, op in missing:
        kind = record_of(op).clock_only
        if kind:
            raise UnimplementedError(
                f"{node!r} stands for {kind}, which have a time on the clock and no values; simulate this graph, or "
                "build it with another precision to run it",
                node=node,
                op=op,
            )


def _stand_in(*_values: object) -> None:
    """A kernel that is never called, as `check_complete` raises first."""


def _unfed(name: str, properties: NodeProperties) -> Kernel:
    """The kernel of a placeholder, which runs only when nothing was fed."""

    def refuse() -> None:
        raise unfed(name, properties.output_types[0], properties.attrs.get("shape"))

    return refuse
