"""The functions that the nodes of a graph may call, by name: definitions, signatures, gradients, and what they need.

A library never changes: merging returns a new one. A name means one function, and no function has the name of an op.
Copies of a graph share one library, with everything that it has cached.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property

from ...errors import InvalidArgumentError
from ..ops.record import Calls, record_of
from ..ops.registry import OpSignature, find_op, lookup_op
from ..protos import AttrValue, FunctionDef, FunctionDefLibrary, NodeDef
from .equality import same_function
from .recursion import explore

BodyKey = tuple[str, tuple[tuple[str, bytes], ...]]
Vertex = tuple[str, bool]
"""name of a function, and whether the vertex is its gradient"""


class FunctionLibrary:
    """Functions by name."""

    def __init__(self, message: FunctionDefLibrary | Callable[[], FunctionDefLibrary]) -> None:
        """The functions of `message`, which must not change any more; of two with one name the last counts.

        If `message` is a callable, it is called when a function is first looked up.
        """
        self._given = message
        self._signatures: dict[str, OpSignature] = {}
        self._needs: dict[str, frozenset[str]] = {}
        self._recursive: dict[Vertex, bool] = {}
        self._attrs_used: dict[str, frozenset[str]] = {}
        self.bodies: dict[BodyKey, object] = {}
        """bodies by function and attrs, made by `functions.body`; cached here because graphs share the library"""
        self.checked: set[object] = set()
        """bodies whose calls, nested ones included, have been checked"""

    @cached_property
    def message(self) -> FunctionDefLibrary:
        """The functions as a message, which must not be changed."""
        return self._given if isinstance(self._given, FunctionDefLibrary) else self._given()

    @cached_property
    def _functions(self) -> dict[str, FunctionDef]:
        return {f.signature.name: f for f in self.message.function}

    @cached_property
    def _gradients(self) -> dict[str, str]:
        return {g.function_name: g.gradient_func for g in self.message.gradient}

    def __contains__(self, name: object) -> bool:
        return name in self._functions

    def __len__(self) -> int:
        return len(self._functions)

    @cached_property
    def num_nodes(self) -> int:
        """The number of nodes in all functions together."""
        return sum(len(function.node_def) for function in self._functions.values())

    def find(self, name: str) -> FunctionDef | None:
        """The function of that name, or None."""
        return self._functions.get(name)

    def signature(self, name: str) -> OpSignature | None:
        """The signature of a function, the same object every time, or None."""
        known = self._signatures.get(name)
        if known is None and name in self._functions:
            known = self._signatures[name] = OpSignature(self._functions[name].signature)
        return known

    def lookup(self, op: str) -> OpSignature:
        """The signature of a function or an op; NotFoundError when there is neither."""
        return self.signature(op) or lookup_op(op)

    def gradient_of(self, name: str) -> str:
        """Name of the function that computes the gradient of another, "" when the library has none."""
        return self._gradients.get(name, "")

    def merged(self, other: FunctionDefLibrary) -> FunctionLibrary:
        """This library with the functions of `other` added.

        Of two definitions that are equal (see `equality`) the first stays. Raises InvalidArgumentError when a function
        has the name of an op, or a name has two different definitions.
        """
        if not other.function and not other.gradient:
            return self
        known, gradients = dict(self._functions), dict(self._gradients)
        message = FunctionDefLibrary()
        message.CopyFrom(self.message)
        for function in other.function:
            if _is_new(function, known):
                known[function.signature.name] = message.function.add()
                known[function.signature.name].CopyFrom(function)
        for gradient in other.gradient:
            assigned = gradients.setdefault(gradient.function_name, gradient.gradient_func)
            if assigned != gradient.gradient_func:
                raise InvalidArgumentError(
                    f"Cannot assign gradient function '{gradient.gradient_func}' to '{gradient.function_name}' because "
                    f"it already has gradient function '{assigned}'"
                )
            if gradient.function_name not in self._gradients:
                message.gradient.add().CopyFrom(gradient)
        return FunctionLibrary(message)

    def reachable(self, names: Iterable[str]) -> FunctionLibrary:
        """The functions among `names` and all that they need, in the order of this library.

        The search runs on the first look-up: every partition of every function has such a library, and few are used.
        """
        wanted = [name for name in names if name in self._functions]
        part = FunctionLibrary(lambda: self._message_of(self.closure(wanted)))
        part.bodies, part._signatures = self.bodies, self._signatures
        return part

    def _message_of(self, names: set[str]) -> FunctionDefLibrary:
        """The functions of those names with their gradients; the message itself if these are all."""
        if len(names) == len(self._functions):
            return self.message
        return FunctionDefLibrary(
            function=[f for f in self.message.function if f.signature.name in names],
            gradient=[g for g in self.message.gradient if g.function_name in names],
        )

    def closure(self, names: Iterable[str]) -> set[str]:
        """Those of `names` that are functions of the library, and all functions that they need."""
        reached: set[str] = set()
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name not in reached:
                reached.add(name)
                waiting += self.needs(name) - reached
        return reached

    def may_call_itself(self, name: str, *, gradient: bool = False) -> bool:
        """Whether a call of a function, or of its gradient, can lead to another call of it; False for an unknown name.

        A SymbolicGradient node names a function and computes its gradient: it computes what the function computes, and
        the gradients of all that the function calls, unless the library names a gradient function:

            f: calls g           f ---> g            gradient of f ---> g, gradient of g
            h: gradient of f     h ---> gradient of f
        """
        vertex = name, gradient
        if vertex not in self._recursive:
            explore(vertex, self._calls, self._recursive)
        return self._recursive[vertex]

    def _calls(self, vertex: Vertex) -> Iterator[Vertex]:
        """The functions and gradients that the body of a function, or of its gradient, may call."""
        name, gradient = vertex
        assigned = self.gradient_of(name) if gradient else ""
        if assigned:
            yield assigned, False
        elif name in self._functions:
            for node in self._functions[name].node_def:
                for called in filter(self._functions.__contains__, _named_by(node)):
                    if gradient or not _is_gradient(node):
                        yield called, False
                    if gradient or _is_gradient(node):
                        yield called, True

    def needs(self, name: str) -> frozenset[str]:
        """Names of the functions that a function calls or names, its gradient included; empty for an unknown name."""
        if name not in self._functions:
            return frozenset()
        known = self._needs.get(name)
        if known is None:
            named = {self.gradient_of(name)}
            for node in self._functions[name].node_def:
                named.update(_named_by(node))
            known = self._needs[name] = frozenset(named & self._functions.keys())
        return known

    def attrs_used_by(self, name: str) -> frozenset[str]:
        """Names of the attrs of a call that its body depends on: declared ones, and placeholders in nodes."""
        known = self._attrs_used.get(name)
        if known is None:
            function = self._functions[name]
            used = {attr.name for attr in function.signature.attr}
            for node in function.node_def:
                used.update(left_open for value in node.attr.values() for left_open in _placeholders(value))
            known = self._attrs_used[name] = frozenset(used)
        return known


def functions_in(value: AttrValue) -> Iterator[str]:
    """Names of the functions in an attr, including those in the attrs of functions that it names."""
    for function in (value.func,) if value.HasField("func") else value.list.func:
        yield function.name
        for inner in function.attr.values():
            yield from functions_in(inner)


def _named_by(node: NodeDef) -> Iterator[str]:
    """Names of the functions and ops that a node calls or names."""
    yield node.op
    for value in node.attr.values():
        yield from functions_in(value)


def _is_new(function: FunctionDef, known: dict[str, FunctionDef]) -> bool:
    name = function.signature.name
    if name not in known:
        if find_op(name) is not None:
            raise InvalidArgumentError(f"Cannot add function '{name}' because an op with the same name already exists.")
        return True
    if not same_function(known[name], function):
        raise InvalidArgumentError(
            f"Cannot add function '{name}' because a different function with the same name already exists."
        )
    return False


def _placeholders(value: AttrValue) -> Iterator[str]:
    """Names of the attrs that `value` takes from the caller of a function."""
    if value.HasField("placeholder"):
        yield value.placeholder
    for function in (value.func,) if value.HasField("func") else value.list.func:
        for inner in function.attr.values():
            yield from _placeholders(inner)


def _is_gradient(node: NodeDef) -> bool:
    return record_of(node.op).calls is Calls.GRADIENT
