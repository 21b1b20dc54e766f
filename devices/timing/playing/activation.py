"""One run of a body: an activation, where it is in loops and calls, and what it hands on to others.

A `Place` says where: in which graph, on which path of calls, in which iterations of the loops around. A `Passed` is a
token that leaves its activation: from an Enter into a loop, from one iteration to the next, from an Exit to the level
around.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ..bodies.paths import CallPath

if TYPE_CHECKING:
    from ....graph.dtypes import Dims
    from ....graph.ops.record import Calls
    from ..bodies.body import Body, SeatedNode
    from ..bodies.levels import Levels, TokenTarget
    from ..costs.source import OpCost
    from ..hardware.streams import ComputePlace, Feeder


class PlayedGraph(Protocol):
    """A graph that is played: a script, which decides all beforehand, or the bodies of one that is asked."""

    @property
    def levels(self) -> Levels | None:
        """Its levels, None if it is one body without loops, conditions and calls."""


class PlayedRun:
    """A loop or call that is being played, or what else wants to hear of the end of an activation."""

    count: int | None = None
    """how often the loop runs; None if nobody knows"""
    latest = -1
    """the number of its iteration that began last"""
    overlaps = False
    """whether it is a loop of which several iterations run at a time"""

    def began(self, activation: Activation) -> None:
        """An activation of it begins."""

    def ended(self, activation: Activation, cause: int) -> None:
        """An activation of it has ended, with the entry `cause`."""

    def shorten(self, iterations: int) -> None:
        """The loop ends so many iterations earlier."""

    def counted_number(self, argument: int) -> int:
        """The number that a call gives for an argument of its function, which instances of collectives count on."""
        raise NotImplementedError

    def state(self, _number: int) -> Hashable:
        """What decides how it goes on, with iterations counted from a number."""
        return None


class LoopTurn(NamedTuple):
    """An iteration of a loop that is being played."""

    name: str
    number: int
    loop: PlayedRun


class Place(NamedTuple):
    """Where an activation is: its graph, the path of calls, its turn, the number of its iteration, its loops.

    `loops` are the iterations of all loops around, outermost first.
    """

    graph: PlayedGraph
    path: CallPath = CallPath()
    turn: int = 0
    number: int = 0
    loops: tuple[LoopTurn, ...] = ()


class Passed(NamedTuple):
    """A node that has passed tokens on: its joint number; by a launch (with its ticket), or by its end.

    `outputs` are its values, where there are any; `is_dead` says that the node did not run.
    """

    node: int
    ticket: int | None
    entry: int
    outputs: Sequence[Any] = ()  # Any: tensors of any type
    is_dead: bool = False


@dataclass(slots=True)
class Tokens:
    """What has come to the nodes of an activation that is asked, and what they have computed and not yet passed on.

    `dead` marks nodes with a dead input, `taken` the Merges that have what they go on with; `dead_inputs` counts those
    of other Merges. `sent` are receives whose tensor was sent while they still waited for something else. `small` has
    nodes that have been computed before they took a device, and whether they take little.
    """

    inputs: dict[int, list[Any]] = field(default_factory=dict)  # Any: tensors of any type
    outputs: dict[int, Sequence[Any]] = field(default_factory=dict)
    dead: bytearray | None = None
    taken: set[int] = field(default_factory=set)
    dead_inputs: dict[int, int] = field(default_factory=dict)
    sent: set[int] = field(default_factory=set)
    small: dict[int, bool] = field(default_factory=dict)
    dying: list[tuple[int, int]] = field(default_factory=list)
    """dead nodes that are ready, and the entries that released them"""
    latest: int = -1
    """the entry of the node that ran and ended last"""


@dataclass(slots=True)
class NodeFacts:
    """What is known of the nodes of an activation that was asked, after they have run.

    A dead output has the shape None; `sizes` are the bytes of receives, `seats` those of members of collectives.
    """

    costs: dict[int, OpCost] = field(default_factory=dict)
    shapes: dict[int, tuple[Dims | None, ...]] = field(default_factory=dict)
    sizes: dict[int, int] = field(default_factory=dict)
    seats: dict[int, SeatedNode] = field(default_factory=dict)

    def has(self, node: int, output: int) -> bool:
        """Whether an output was computed, and not dead; -1 stands for the node itself."""
        shapes = self.shapes.get(node)
        return shapes is not None and (output < 0 or shapes[output] is not None)


class Activation:
    """One run of a body: its rows begin at `base`, and `waits` says by node how many events it still waits for.

    `run` is the loop or call that it belongs to, None for the step itself, and `passes` as in its body for that alone.
    `left` counts what must end before it has:
    nodes and loops inside that are open; `left_in` the same by partition for iterations. In a body that is asked only
    nodes that are ready, or run, are counted: others may never be reached. `opened` has the loops inside by frame,
    `calls` the calls by node.
    """

    __slots__ = (
        "base",
        "body",
        "calls",
        "facts",
        "left",
        "left_in",
        "open_merges",
        "opened",
        "passes",
        "place",
        "places",
        "player",
        "run",
        "tokens",
        "waits",
    )

    def __init__(
        self,
        body: Body,
        base: int,
        place: Place,
        run: PlayedRun | None,
        player: Feeder,
        places: Sequence[ComputePlace | None],
    ) -> None:
        """`places` are those of the hardware, by node; the engine tells `player` of its rows."""
        self.body = body
        self.base = base
        self.place = place
        self.run = run
        self.player = player
        self.places = places
        self.passes = body.passes if run is None else None
        self.waits = body.waits.copy()
        self.left = 0 if body.asked is not None else len(body)
        self.left_in: dict[int, int] | None = None
        self.opened: dict[int, PlayedLoop] = {}
        self.calls: dict[int, PlayedCall] = {}
        self.open_merges = {merge for merges in body.into_merges.values() for merge in merges}
        self.tokens: Tokens | None = None
        self.facts: NodeFacts | None = None

    def ends_by_partition(self) -> None:
        """It is an iteration: its partitions end one by one."""
        assert self.body.gates is not None  # as it is the body of a level
        counts = self.body.gates.counts
        self.left_in = counts.copy() if self.body.asked is None else dict.fromkeys(counts, 0)

    def inner(self) -> list[PlayedRun]:
        """The loops and calls that it has begun."""
        return [*self.opened.values(), *self.calls.values()]

    @property
    def prefix(self) -> str:
        """Begins the names of its nodes in the timeline."""
        return str(self.place.path)

    @property
    def iteration(self) -> str:
        """Which iterations of which loops it is: "outer:2/inner:0"."""
        return "/".join(f"{turn.name}:{turn.number}" for turn in self.place.loops)


class PlayedLoop(PlayedRun):
    """What is known of a loop by those who read the record of a step."""

    parent: Activation
    frame: int
    iterations: dict[int, Activation]

    @property
    def last(self) -> Activation:
        """The iteration that found the end of the loop."""
        return self.iterations[next(reversed(self.iterations))]


class PlayedCall(PlayedRun):
    """What is known of a call by those who read the record of a step.

    `last` is the activation whose results are those of the call, None of a loop that did not run; `before` has by first
    row the one whose results were its arguments, None where these are the inputs of the node. `runs` are all, in order.
    """

    caller: Activation
    node: int
    kind: Calls | None
    last: Activation | None
    before: dict[int, Activation | None]
    runs: list[Activation]


class Playing(Protocol):
    """What loops and calls need of the player."""

    @property
    def next_row(self) -> int:
        """The first row of the next activation."""

    def begin(self, body: Body, place: Place, run: PlayedRun | None, cause: int) -> Activation:
        """Begins an activation; its nodes without inputs are released by the entry `cause`."""

    def deliver(self, activation: Activation, consumers: Sequence[TokenTarget], passed: Passed) -> None:
        """Counts down nodes of an activation that another one has fed."""

    def hold(self, activation: Activation, place: int) -> None:
        """A loop inside an activation begins in a partition: the activation lasts as long."""

    def left(self, activation: Activation, place: int, entry: int) -> None:
        """A loop inside an activation has ended in a partition."""

    def call_ended(self, caller: Activation, node: int, cause: int) -> None:
        """The functions that a node called have ended."""

    def begun(self, loop: PlayedRun) -> None:
        """An iteration begins, and all of the loop run alike."""
