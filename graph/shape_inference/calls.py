"""Shape inference through nested calls of functions, without recursion.

The walk of a graph stops at a call whose results are not known yet; the walk of the function comes next, while that of
the caller waits in a list. Results are cached, so a function is walked once for arguments of the same shapes.

    walk of the graph -- Wanted(f) --> walk of f -- Wanted(g) --> walk of g
            ^---- shapes of f's results ----'  ^---- shapes of g's results ----'
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ...errors import PartitaError
from ..dtypes import Shapes
from ..functions.body import FunctionBody

Behind = tuple[Shapes | None, ...]
"""by tensor the shapes behind the handle that it is; None if they are unknown, or it is none"""


@dataclass(frozen=True, slots=True)
class ShapedCall:
    """A call of a function, with everything that the shapes of its results depend on.

    `handles` has, by argument, the shapes behind handles; `inside` has the functions being walked that may
    call themselves, if this function is one of them.
    """

    body: FunctionBody
    arguments: Shapes
    handles: tuple[tuple[int, Shapes], ...]
    inside: frozenset[str]


class TensorShapes(NamedTuple):
    """The shapes of several tensors, and what is behind those that are handles."""

    shapes: Shapes
    behind: Behind


class Wanted(Exception):
    """The walk of a graph needs the results of `call` before it can go on."""

    def __init__(self, call: ShapedCall) -> None:
        super().__init__(call)
        self.call = call


class CallShapes(dict[ShapedCall, TensorShapes | PartitaError]):
    """Results by call, or the error of the call; `inside` has what was inferred in bodies that were walked for that.

    It is known of steps only, since the shapes of an import are no more than its checks need.
    """

    def __init__(self) -> None:
        super().__init__()
        self.inside: dict[ShapedCall, object] = {}  # `InferredShapes`, which know calls


class Walk(Protocol):
    """The inference of one graph."""

    called: CallShapes
    is_step: bool

    def run(self) -> Iterator[ShapedCall]:
        """Infers all shapes; yields the calls whose results it needs before it can go on."""

    def results(self, body: FunctionBody) -> TensorShapes:
        """What is known of the results of a body whose walk is done."""

    def inferred(self) -> object:
        """The shapes of all nodes, once the walk is done."""


def walk_with_calls(root: Walk, begin: Callable[[ShapedCall], Walk]) -> None:
    """Walks a graph and the functions it calls; `begin` makes the walk of a function. Raises errors of the graph."""
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
            if inference.is_step:
                root.called.inside[call] = inference.inferred()
