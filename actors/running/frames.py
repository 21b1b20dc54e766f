"""Frames and iterations: the bookkeeping of loops in the tagged-frame interpreter.

Flows in: tokens entering, leaving and advancing. Flows out: which iteration a token belongs to, and which frames are
done. Always holds: an iteration is done when nothing in it or below it is under way and no more input can come; a
frame is done when all its Enters have fired and all its iterations are done; done is final, and then only dead exits
remain to be told.

A token's place is (frame, iteration). Two executions of one loop are two frames; their names spell the way down:
`parent;iteration;frame_name`, "" for the root, so that both ends of a transfer find the same name on their own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Pending:
    """What a node still waits for in one iteration.

    For a Merge, `count` is 1 plus twice the control inputs outstanding: the odd bit stays until a live value is there.
    """

    count: int
    inputs: list[Any]
    num_dead: int = 0


@dataclass(slots=True, eq=False)
class Iteration:
    """One iteration of a frame: nodes waiting in it, and how much is under way in it."""

    pending: dict[int, Pending] = field(default_factory=dict)
    outstanding_ops: int = 0
    outstanding_frames: int = 0


@dataclass(slots=True, eq=False)
class Frame:
    """One execution of a loop body, or the root.

    `key` is the `frame_name` attr of its Enters. `num_pending_inputs` counts Enters that have not fired. `latest` is
    the highest iteration begun. `invariants` are (node, value) of constant Enters, delivered to every iteration.
    `next_roots` wait for an iteration slot to come free.
    """

    name: str
    key: str
    parent: Frame | None = None
    parent_iteration: int = 0
    num_pending_inputs: int = 0
    max_parallel: int = 1
    iterations: dict[int, Iteration] = field(default_factory=lambda: {0: Iteration()})
    latest: int = 0
    outstanding_iterations: int = 1
    children: dict[tuple[int, str], Frame] = field(default_factory=dict)
    invariants: list[tuple[int, Any]] = field(default_factory=list)
    next_roots: list[tuple[int, Any]] = field(default_factory=list)
    dead_exits: list[int] = field(default_factory=list)

    def child_name(self, iteration: int, frame_name: str) -> str:
        """The name of the frame that `frame_name` opens in an iteration of this one."""
        return f"{self.name};{iteration};{frame_name}"

    def is_iteration_done(self, iteration: int) -> bool:
        """Whether nothing can happen in an iteration any more."""
        state = self.iterations[iteration]
        if state.outstanding_ops or state.outstanding_frames:
            return False
        return self.num_pending_inputs == 0 if iteration == 0 else iteration - 1 not in self.iterations

    @property
    def is_done(self) -> bool:
        """Whether the frame is over."""
        return self.num_pending_inputs == 0 and self.outstanding_iterations == 0


@dataclass(frozen=True, slots=True)
class Token:
    """A node that is ready to run, where, and whether it is dead."""

    partition: int
    node: int
    frame: Frame
    iteration: int
    is_dead: bool
