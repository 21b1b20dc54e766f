"""The functions that the nodes of a graph may call.

Flows in: FunctionDefLibrary messages. Flows out: definitions, signatures and gradients by name, and the part of a
library that some functions need. Always holds: a library never changes (merging gives a new one); a name means one
function, and never an op; graphs that are copies of each other share one library with all it has worked out so far.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property

from ...errors import InvalidArgumentError
from ..ops.record import Calls, record_of
from ..ops.registry import OpSignature, find_op, lookup_op
from ..protos import AttrValue, FunctionDef, FunctionDefLibrary, NodeDef
from .equality import same_function
from .named import functions_in
from .recursion import explore

BodyKey = tuple[str, tuple[tuple[str, bytes], ...]]
Vertex = tuple[str, bool]
"""name of a function, and whether its gradient is meant"""


class FunctionLibrary:
    """Functions by name."""

    def __init__(self, message: FunctionDefLibrary | Callable[[], FunctionDefLibrary]) -> None:
        """The functions of `message`, which must not change any more; of two with one name the last counts.

        What makes a message is asked for it when a function is first looked for.
        """
        self._given = message
        self._signatures: dict[str, OpSignature] = {}
        self._needs: dict[str, frozenset[str]] = {}
        self._recursive: dict[Vertex, bool] = {}
        self._attrs_used: dict[str, frozenset[str]] = {}
        self.bodies: dict[BodyKey, object] = {}
        """what `functions.body` has made, by function and attrs: kept here as the library is what graphs share"""
        self.checked: set[object] = set()
        """bodies whose calls have been looked into, down to the last, and found right"""

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
        found = self._signatures.get(name)
        if found is None and name in self._functions:
            found = self._signatures[name] = OpSignature(self._functions[name].signature)
        return found

    def lookup(self, op: str) -> OpSignature:
        """The signature of a function or else of an op; NotFoundError when there is neither."""
        return self.signature(op) or lookup_op(op)

    def gradient_of(self, name: str) -> str:
        """Name of the function that computes the gradient of another, "" when the library assigns none."""
        return self._gradients.get(name, "")

    def merged(self, other: FunctionDefLibrary) -> FunctionLibrary:
        """This library with the functions of `other` added.

        Of two definitions that mean the same (see `equality`) the first stays. Raises InvalidArgumentError when a
        function has the name of an op, or a name has two meanings.
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
        """The functions among `names` and all that those need, in the order of this library.

        They are looked for when somebody asks for one: each part of each function has such a library, and few do.
        """
        wanted = [name for name in names if name in self._functions]
        part = FunctionLibrary(lambda: self._message_of(self.closure(wanted)))
        part.bodies, part._signatures = self.bodies, self._signatures
        return part

    def _message_of(self, found: set[str]) -> FunctionDefLibrary:
        """Some functions with their gradients; the message itself for all of them."""
        if len(found) == len(self._functions):
            return self.message
        return FunctionDefLibrary(
            function=[f for f in self.message.function if f.signature.name in found],
            gradient=[g for g in self.message.gradient if g.function_name in found],
        )

    def closure(self, names: Iterable[str]) -> set[str]:
        """Some functions of the library, and all that those need."""
        found: set[str] = set()
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += self.needs(name) - found
        return found

    def may_call_itself(self, name: str, *, gradient: bool = False) -> bool:
        """Whether a call of a function, or of its gradient, can lead to another one of it; not for an unknown name.

        A SymbolicGradient node names a function and computes its gradient. That recomputes what the function computes
        and asks for the gradients of all that it calls, unless the library names a function that computes it:

            f: calls g           f ---> g            gradient of f ---> g, gradient of g
            h: gradient of f     h ---> gradient of f
        """
        vertex = name, gradient
        if vertex not in self._recursive:
            explore(vertex, self._calls, self._recursive)
        return self._recursive[vertex]

    def _calls(self, vertex: Vertex) -> Iterator[Vertex]:
        """Whatever the body of a function, or of its gradient, may call."""
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
        """Names of the functions that a function calls or names, its gradient included; none for an unknown name."""
        if name not in self._functions:
            return frozenset()
        found = self._needs.get(name)
        if found is None:
            named = {self.gradient_of(name)}
            for node in self._functions[name].node_def:
                named.update(_named_by(node))
            found = self._needs[name] = frozenset(named & self._functions.keys())
        return found

    def attrs_used_by(self, name: str) -> frozenset[str]:
        """Names of the attrs of a call that decide what a function is: declared ones, and those nodes leave open."""
        found = self._attrs_used.get(name)
        if found is None:
            function = self._functions[name]
            used = {attr.name for attr in function.signature.attr}
            for node in function.node_def:
                used.update(left_open for value in node.attr.values() for left_open in _placeholders(value))
            found = self._attrs_used[name] = frozenset(used)
        return found


def _named_by(node: NodeDef) -> Iterator[str]:
    """Names of the functions, and ops, that a node calls or names."""
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
    """Names of the attrs that `value` leaves to the caller of a function."""
    if value.HasField("placeholder"):
        yield value.placeholder
    for function in (value.func,) if value.HasField("func") else value.list.func:
        for inner in function.attr.values():
            yield from _placeholders(inner)


def _is_gradient(node: NodeDef) -> bool:
    return record_of(node.op).calls is Calls.GRADIENT
