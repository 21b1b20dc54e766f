"""Which functions can lead to a call of themselves.

Flows in: a library. Flows out: whether a call can come back to its function. Always holds: all answers together cost
one walk over the calls of the library, however deep they are nested; nothing here recurses.

A vertex is a function, or its gradient (a SymbolicGradient node names the function and computes the gradient). An edge
leads to whatever a body may call. The gradient of a function recomputes what the function computes and asks for the
gradients of all that it calls, unless the library names a function that computes it:

    f: calls g           f ---> g            gradient of f ---> g, gradient of g
    h: gradient of f     h ---> gradient of f

A vertex is recursive if it is in a circle: in a strongly connected component of several vertices, or with an edge to
itself. Components are found by Tarjan's algorithm, with a list in place of its recursion.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from .named import functions_in

if TYPE_CHECKING:
    from ..protos import NodeDef
    from .function_library import FunctionLibrary

Vertex = tuple[str, bool]
"""name of a function, and whether its gradient is meant"""

_GRADIENT = "SymbolicGradient"


def explore(library: FunctionLibrary, root: Vertex, answers: dict[Vertex, bool]) -> None:
    """Adds to `answers` whether `root`, and all that it can lead to, can lead to a call of itself.

    Those that are in `answers` are not looked into again. A name that the library lacks leads nowhere.
    """
    order: dict[Vertex, int] = {}
    lowest: dict[Vertex, int] = {}  # the earliest vertex of its component that is known to be reachable
    component: list[Vertex] = []
    path = [(root, _calls(library, root))]
    while path:
        vertex, calls = path[-1]
        if vertex not in order:
            order[vertex] = lowest[vertex] = len(order)
            component.append(vertex)
        called = next((called for called in calls if called not in answers), None)
        if called is None:
            path.pop()
            if path:
                caller = path[-1][0]
                lowest[caller] = min(lowest[caller], lowest[vertex])
            if lowest[vertex] == order[vertex]:
                _close(library, vertex, component, answers)
        elif called in order:
            lowest[vertex] = min(lowest[vertex], order[called])
        else:
            path.append((called, _calls(library, called)))


def _close(library: FunctionLibrary, first: Vertex, component: list[Vertex], answers: dict[Vertex, bool]) -> None:
    """Takes a component, which begins with `first`, off the list, and writes down the answers for it."""
    members = [component.pop()]
    while members[-1] != first:
        members.append(component.pop())
    in_circle = len(members) > 1 or first in _calls(library, first)
    answers.update(dict.fromkeys(members, in_circle))


def _calls(library: FunctionLibrary, vertex: Vertex) -> Iterator[Vertex]:
    name, gradient = vertex
    function = library.find(name)
    assigned = library.gradient_of(name) if gradient else ""
    if assigned:
        yield assigned, False
    elif function is not None:
        for node in function.node_def:
            for called in _named_by(node):
                if called not in library:
                    continue
                if gradient or node.op != _GRADIENT:
                    yield called, False
                if gradient or node.op == _GRADIENT:
                    yield called, True


def _named_by(node: NodeDef) -> Iterator[str]:
    yield node.op
    for value in node.attr.values():
        yield from functions_in(value)
