"""Frames and iterations of the reference executor: which loops are running, and when they are over.

Example: a node at (frame, iteration) in a loop "inner" inside a loop "outer", both in their second iteration:

    root  --iteration 0, Enter "outer"-->  ";0;outer"  --iteration 1, Enter "inner"-->  ";0;outer;1;inner"  iteration 1

Two executions of one loop are two frames. The name of a frame spells the path to it, so both ends of a transfer compute
the same name.

An iteration is done when no node of it is ready or running, no frame inside is open, and no input can still come: in
iteration 0 from an Enter, later from the iteration before. A frame is done when all its Enters have run and all its
iterations are done; then only its dead exits are passed on to the parent.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple


@dataclass(slots=True)
class PendingNode:
    """The inputs that a node has in one iteration, and how many it still waits for.

    For a Merge, `count` is 1 plus twice the missing control inputs; the lowest bit is cleared by the first live value.
    """

    count: int
    inputs: list[Any]
    num_dead: int = 0


@dataclass(slots=True, eq=False)
class Iteration:
    """One iteration of a frame: nodes that wait for inputs, and counts of ready nodes and of open inner frames."""

    pending: dict[int, PendingNode] = field(default_factory=dict)
    outstanding_ops: int = 0
    outstanding_frames: int = 0


@dataclass(slots=True, eq=False)
class RunningFrame:
    """One execution of a loop body, or the root.

    `key` is the `frame_name` attr of its Enters. `num_pending_inputs` counts Enters that have not run. `latest` is
    the highest iteration begun. `invariants` are (node, value) of constant Enters, delivered to every iteration.
    `next_roots` are the NextIterations that wait because `max_parallel` iterations are running.
    """

    name: str
    key: str
    parent: RunningFrame | None = None
    parent_iteration: int = 0
    num_pending_inputs: int = 0
    max_parallel: int = 1
    iterations: dict[int, Iteration] = field(default_factory=lambda: {0: Iteration()})
    latest: int = 0
    outstanding_iterations: int = 1
    children: dict[tuple[int, str], RunningFrame] = field(default_factory=dict)
    invariants: list[tuple[int, Any]] = field(default_factory=list)
    next_roots: list[tuple[int, Any]] = field(default_factory=list)
    dead_exits: list[int] = field(default_factory=list)

    def child_name(self, iteration: int, frame_name: str) -> str:
        """The name of the frame that an Enter with this `frame_name` opens in an iteration of this frame.

        A ";" in `frame_name` is written as ";;", so that no two paths have one name.
        """
        return f"{self.name};{iteration};{frame_name.replace(';', ';;')}"

    def iterations_at(self, iteration: int) -> tuple[int, ...]:
        """The numbers of the iterations around what runs in an iteration of this frame, none outside of loops."""
        if self.parent is None:
            return ()
        return (*self.parent.iterations_at(self.parent_iteration), iteration)

    def is_iteration_done(self, iteration: int) -> bool:
        """Whether no node can run in an iteration any more."""
        state = self.iterations[iteration]
        if state.outstanding_ops or state.outstanding_frames:
            return False
        return self.num_pending_inputs == 0 if iteration == 0 else iteration - 1 not in self.iterations

    @property
    def is_done(self) -> bool:
        """Whether all Enters have run and all iterations are done."""
        return self.num_pending_inputs == 0 and self.outstanding_iterations == 0


@dataclass(frozen=True, slots=True)
class Token:
    """A node that is ready to run in one iteration of a frame; `is_dead` says that an input is dead."""

    partition: int
    node: int
    frame: RunningFrame
    iteration: int
    is_dead: bool


class Target(NamedTuple):
    """An input of a node in one iteration of a frame; `port` is -1 for a control input."""

    frame: RunningFrame
    iteration: int
    node: int
    port: int
