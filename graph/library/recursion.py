"""Which vertices of a directed graph can reach themselves; used for functions that may call themselves.

Such a vertex is in a strongly connected component of several vertices, or has an edge to itself. Tarjan's algorithm
finds the components in one walk over the edges; it uses a list instead of recursion, as calls may be nested deeply.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

V = TypeVar("V", bound=Hashable)


def explore(root: V, leads_to: Callable[[V], Iterable[V]], answers: dict[V, bool]) -> None:
    """Adds to `answers` whether `root`, and each vertex that it can reach, can reach itself.

    Vertices that are in `answers` already are not visited again.
    """
    order: dict[V, int] = {}
    lowest: dict[V, int] = {}  # the earliest vertex on the stack that each vertex is known to reach
    component: list[V] = []
    path = [(root, iter(leads_to(root)))]
    while path:
        vertex, following = path[-1]
        if vertex not in order:
            order[vertex] = lowest[vertex] = len(order)
            component.append(vertex)
        called = next((called for called in following if called not in answers), None)
        if called is None:
            path.pop()
            if path:
                caller = path[-1][0]
                lowest[caller] = min(lowest[caller], lowest[vertex])
            if lowest[vertex] == order[vertex]:
                members = _component_from(vertex, component)
                in_circle = len(members) > 1 or vertex in leads_to(vertex)
                answers.update(dict.fromkeys(members, in_circle))
        elif called in order:
            lowest[vertex] = min(lowest[vertex], order[called])
        else:
            path.append((called, iter(leads_to(called))))


def _component_from(first: V, component: list[V]) -> list[V]:
    """Removes the component that begins with `first` from the list and returns it."""
    members = [component.pop()]
    while members[-1] != first:
        members.append(component.pop())
    return members
