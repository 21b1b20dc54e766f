"""The functions that the nodes of a graph may call.

Flows in: FunctionDefLibrary messages. Flows out: definitions, signatures and gradients by name, and the part of a
library that some functions need. Always holds: a library never changes (merging gives a new one); a name means one
function, and never an op; graphs that are copies of each other share one library with all it has worked out so far.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ...errors import InvalidArgumentError
from ..ops.registry import OpSignature, find_op, lookup_op
from ..protos import AttrValue, FunctionDef, FunctionDefLibrary
from .equality import same_function

if TYPE_CHECKING:
    from .body import FunctionBody

BodyKey = tuple[str, tuple[tuple[str, bytes], ...]]


class FunctionLibrary:
    """Functions by name."""

    def __init__(self, message: FunctionDefLibrary) -> None:
        """The functions of `message`, which must not change any more; of two with one name the last counts."""
        self.message = message
        self._functions = {f.signature.name: f for f in message.function}
        self._gradients = {g.function_name: g.gradient_func for g in message.gradient}
        self._signatures: dict[str, OpSignature] = {}
        self._needs: dict[str, frozenset[str]] = {}
        self._attrs_used: dict[str, frozenset[str]] = {}
        self.bodies: dict[BodyKey, FunctionBody] = {}
        """what `body.instantiate` has made, by function and attrs"""

    def __contains__(self, name: object) -> bool:
        return name in self._functions

    def __len__(self) -> int:
        return len(self._functions)

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
        """The functions among `names` and all that those need, in the order of this library."""
        found = self.closure(name for name in names if name in self._functions)
        if len(found) == len(self._functions):
            return self
        part = FunctionLibrary(
            FunctionDefLibrary(
                function=[f for f in self.message.function if f.signature.name in found],
                gradient=[g for g in self.message.gradient if g.function_name in found],
            )
        )
        part.bodies = self.bodies
        return part

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

    def needs(self, name: str) -> frozenset[str]:
        """Names of the functions that a function calls or names, its gradient included; none for an unknown name."""
        if name not in self._functions:
            return frozenset()
        found = self._needs.get(name)
        if found is None:
            named = {self.gradient_of(name)}
            for node in self._functions[name].node_def:
                named.add(node.op)
                named.update(called for value in node.attr.values() for called in functions_in(value))
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


def functions_in(value: AttrValue) -> Iterator[str]:
    """Names of the functions that an attr names, also in the attrs it gives to them."""
    for function in (value.func,) if value.HasField("func") else value.list.func:
        yield function.name
        for inner in function.attr.values():
            yield from functions_in(inner)


def _placeholders(value: AttrValue) -> Iterator[str]:
    """Names of the attrs that `value` leaves to the caller of a function."""
    if value.HasField("placeholder"):
        yield value.placeholder
    for function in (value.func,) if value.HasField("func") else value.list.func:
        for inner in function.attr.values():
            yield from _placeholders(inner)
