"""What is known of the rows of a virtual step: costs, shapes and bytes, where inputs came from, who called whom."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ....devices.timing.costs.source import OpCost
    from .body import Dims, VirtualBody


class Called(NamedTuple):
    """Why a graph runs: the row of the node that called it, and the run whose results are its arguments.

    `before` is the first row of that run, -1 if the arguments are the inputs of the node.
    """

    row: int
    before: int = -1


class RunOfCall(NamedTuple):
    """A run that a node has begun: its first row, and whether its results are those of the call so far."""

    base: int
    gives_results: bool


class Turn(NamedTuple):
    """Where an iteration of a loop is, by first rows: the iteration around the loop, and the one before.

    `bound_by` had to be done before it began, because only so many may be open. -1 stands for none.
    """

    around: int = -1
    before: int = -1
    bound_by: int = -1


class Rows:
    """The rows of one iteration of one graph that runs, from `base` on; other columns are by joint number.

    `run` is the first row of that run of the graph, `turn` where the iteration is. A dead output has the shape None.
    """

    __slots__ = (
        "base",
        "body",
        "called",
        "calls",
        "costs",
        "fed",
        "iteration",
        "released_by",
        "run",
        "scope",
        "shapes",
        "sizes",
        "turn",
    )

    def __init__(self, base: int, body: VirtualBody, scope: str, iteration: str, run: int, turn: Turn) -> None:
        self.base = base
        self.body = body
        self.scope = scope
        self.iteration = iteration
        self.run = run
        self.turn = turn
        self.costs: dict[int, OpCost] = {}
        self.shapes: dict[int, tuple[Dims | None, ...]] = {}
        """of nodes that have run"""
        self.sizes: dict[int, int] = {}
        """bytes of receives"""
        self.fed: dict[tuple[int, int], int] = {}
        """by node and port: the row of an input that another iteration gave"""
        self.released_by: list[tuple[int, int]] = []
        """nodes, and rows of other iterations that released them by control edges"""
        self.called: Called | None = None
        self.calls: dict[int, list[RunOfCall]] = {}

    def has(self, number: int, output: int) -> bool:
        """Whether an output was computed, and not dead."""
        shapes = self.shapes.get(number)
        return shapes is not None and (output < 0 or shapes[output] is not None)
