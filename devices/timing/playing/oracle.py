"""Who knows what nodes do: the player asks an oracle, before an activation begins or when a node is ready.

What the oracle knows beforehand it gives as columns: times, sizes, the branches that are taken, so many more
iterations, all alike. The body is compiled for that knowledge (`bodies`), has no dead node, and nobody is asked about
one node of it.
Of a body that is `asked` it knows nothing but the graph; then the player asks it for every node (`NodeOracle`).

    model of a step         `model.ModelOracle`    counts and branches by `Choices`, times by a source of costs
    values of a step        actors/running/virtual, whose kernels compute them
    record of a step        `replaying.RecordOracle`, which knows what has happened
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from ..bodies.body import Body, SeatedNode
    from .activation import Activation, Playing
    from .call_run import CallRun


class LoopTurns(NamedTuple):
    """How many iterations of a loop go on, None if nobody knows; the turn of the first; whether all run alike."""

    iterations: int | None
    first_turn: int
    is_uniform: bool


class AskedIteration(NamedTuple):
    """Which iteration of which loop: the activation around, its frame, the number, the turn; `of` how many go on.

    `dead` are the Enters that do not run.
    """

    parent: Activation
    frame: int
    number: int
    turn: int
    of: int | None
    dead: frozenset[int]


class Computed(NamedTuple):
    """What a node has computed, the time that it takes, and whether it takes none."""

    outputs: Sequence[Any]  # tensors of any type
    time_ns: int
    is_free: bool = False


class Oracle(Protocol):
    """What the player asks before an activation begins."""

    def turns(self, parent: Activation, frame: int, *, is_dead: bool) -> LoopTurns:
        """How often a loop runs; in a dead one, which nothing but constants enters, no iteration goes on."""

    def body(self, iteration: AskedIteration) -> Body:
        """The body of an iteration."""

    def call(self, player: Playing, caller: Activation, node: int) -> CallRun:
        """What a node that calls functions runs."""


class NodeOracle(Oracle, Protocol):
    """What the player asks about the nodes of a body that is asked, when they are ready."""

    @property
    def is_over(self) -> bool:
        """Whether the step has failed: then nothing of it is played any more."""

    def is_dead(self, value: Any) -> bool:
        """Whether an output is a dead token."""

    def is_small(self, inputs: list[Any]) -> bool:
        """Whether a node with these inputs takes little, see `hardware.iterations`."""

    def compute(self, activation: Activation, node: int, inputs: list[Any]) -> Computed | None:
        """Computes a node; None if that failed, and the step with it."""

    def sent(self, activation: Activation, node: int, inputs: list[Any]) -> Any:
        """What a send sends."""

    def received(self, activation: Activation, node: int, value: Any) -> int | None:
        """The bytes of a tensor that a receive gets; None if that failed, and the step with it."""

    def start(self, activation: Activation, node: int, inputs: list[Any]) -> None:
        """Starts a deferred node, whose outputs `Asking.arrived` gets."""

    def joins(self, activation: Activation, node: int, inputs: list[Any]) -> SeatedNode | None:
        """Starts the member of a collective, whose outputs `Asking.arrived` gets; None if that failed."""

    def finish(self, activation: Activation, node: int, outputs: Sequence[Any]) -> int | None:
        """How long a deferred node takes after its wait; None if that failed, and the step with it."""
