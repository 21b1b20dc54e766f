"""The rows of one run of a graph: every iteration of a loop has rows of its own, reserved when its first node runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .rows import Turn

if TYPE_CHECKING:
    from ..tokens.frames import RunningFrame, Target, Token
    from .body import VirtualBody
    from .caller import Caller
    from .clock import VirtualClock
    from .record import StepRecord


class Iterations:
    """The iterations of the loops of a run, and where their rows begin; `base` is the first row of the run."""

    def __init__(self, clock: VirtualClock, record: StepRecord, body: VirtualBody, caller: Caller) -> None:
        self.base = -1
        self._clock = clock
        self._record = record
        self._body = body
        self._caller = caller
        self._bases: dict[tuple[str, int], int] = {}  # by name of the frame and iteration

    def begin(self, root: RunningFrame) -> None:
        """The run begins."""
        self.base = self._clock.num_rows
        self._first_row(root, 0)

    def row(self, token: Token) -> int:
        """The row of a node in its iteration."""
        return self._first_row(token.frame, token.iteration) + self._body.joint[token.partition][token.node]

    def cross(self, op: str, token: Token, target: Target) -> None:
        """Remembers that a node of a loop gives an input to another iteration.

        The token of an Enter or NextIteration may be of the iteration that gets it.
        """
        frame, iteration = target.frame, target.iteration
        if op == "Enter":
            assert frame.parent is not None  # as a loop is entered
            source = self._first_row(frame.parent, frame.parent_iteration)
        elif op == "NextIteration":
            source = self._first_row(frame, iteration - 1)
        else:
            source = self._first_row(token.frame, token.iteration)
        joint = self._body.joint[token.partition]
        number = joint[target.node]
        row = self._first_row(frame, iteration) + number
        self._record.fed(row, number, target.port, source + joint[token.node])

    def name(self, frame: RunningFrame, iteration: int) -> str:
        """The iterations of the loops around a node, the outermost first: "outer:2/inner:0"."""
        if frame.parent is None:
            return self._caller.iteration
        around = self.name(frame.parent, frame.parent_iteration)
        own = f"{self._caller.scope}{frame.key}:{iteration}"
        return f"{around}/{own}" if around else own

    def _first_row(self, frame: RunningFrame, iteration: int) -> int:
        base = self._bases.get((frame.name, iteration))
        return self._begun(frame, iteration) if base is None else base

    def _begun(self, frame: RunningFrame, iteration: int) -> int:
        """Reserves the rows of an iteration; returns the first."""
        turn = Turn()
        if frame.parent is not None:
            around = self._first_row(frame.parent, frame.parent_iteration)
            before, bound_by = (self._bases.get((frame.name, iteration - k), -1) for k in (1, frame.max_parallel))
            turn = Turn(around, before, bound_by)
        base = self._bases[frame.name, iteration] = self._clock.new_rows(len(self._body))
        name = self.name(frame, iteration)
        self._record.began(base, self._body, self._caller.scope, name, self.base, turn)
        return base
