"""How the shapes of a graph are inferred through the calls in it, however deep they are nested.

Flows in: the walk over a graph, which stops at a call that nobody has looked into. Flows out: what calls give, by all
that it depends on. Always holds: a function is walked once for arguments of the same shapes; the walk of its caller
waits in a list meanwhile, so nothing recurses.

    walk of the graph -- Wanted(f) --> walk of f -- Wanted(g) --> walk of g
            ^---- shapes of f's results ----'  ^---- shapes of g's results ----'
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from ...errors import PartitaError
from ..dtypes import Shape
from ..functions.body import FunctionBody

Shapes = tuple[Shape, ...]


@dataclass(frozen=True, slots=True)
class ShapedCall:
    """A call of a function, and all that the shapes of its results depend on.

    `handles` are, by argument, the shapes that resource handles stand for; `inside` are the functions being looked into
    that may call themselves, if the function is one of those.
    """

    body: FunctionBody
    arguments: Shapes
    handles: tuple[tuple[int, Shape], ...]
    inside: frozenset[str]


class Wanted(Exception):
    """The walk of a graph cannot go on before it is known what `call` gives."""

    def __init__(self, call: ShapedCall) -> None:
        super().__init__(call)
        self.call = call


CallShapes = dict[ShapedCall, Shapes | PartitaError]
"""what calls give, or why they cannot be made"""


class Walk(Protocol):
    """The inference of one graph."""

    called: CallShapes

    def run(self) -> Iterator[ShapedCall]:
        """Finds all shapes; yields the calls whose results have to be known before it can go on."""

    def results(self, body: FunctionBody) -> Shapes:
        """Shapes of the results of a body that has been walked."""


def walk_with_calls(root: Walk, begin: Callable[[ShapedCall], Walk]) -> None:
    """Walks a graph and the functions it calls, which `begin` begins to; raises the error of the graph."""
    calls: list[ShapedCall] = []
    walks = [(root, root.run())]
    while walks:
        inference, steps = walks[-1]
        try:
            wanted = next(steps, None)
        except PartitaError as error:
            if not calls:
                raise
            walks.pop()
            root.called[calls.pop()] = error
            continue
        if wanted is not None:
            inner = begin(wanted)
            calls.append(wanted)
            walks.append((inner, inner.run()))
            continue
        walks.pop()
        if calls:
            call = calls.pop()
            root.called[call] = inference.results(call.body)
