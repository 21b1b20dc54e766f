"""Which vertices of a directed graph lead back to themselves: the functions that can lead to a call of themselves.

All answers together cost one walk over the edges, however deep calls are nested; nothing here recurses.

A vertex comes back if it is in a circle: in a strongly connected component of several vertices, or with an edge to
itself. Components are found by Tarjan's algorithm, with a list in place of its recursion.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

V = TypeVar("V", bound=Hashable)


def explore(root: V, leads_to: Callable[[V], Iterable[V]], answers: dict[V, bool]) -> None:
    """Adds to `answers` whether `root`, and all that it can lead to, can lead to itself.

    Those that are in `answers` are not looked into again.
    """
    order: dict[V, int] = {}
    lowest: dict[V, int] = {}  # the earliest vertex of its component that is known to be reachable
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
    """Takes the component that begins with `first` off the list."""
    members = [component.pop()]
    while members[-1] != first:
        members.append(component.pop())
    return members
