"""What a compiled partition is: slots to start from, segments of instructions, and where values come in and go out.

    y = -x + 1      template        1 in s5
                    arguments       feed 0 goes to s6
                    segments        one: s8 = neg(s6), s7 = add(s8, s5)
                    results         fetch 0 is in s7
    To run it       slots = template.copy(), slots[6] = 2.0, run the segment; then slots[7] is -1.0

A plan is shared by all steps that run it and keeps nothing of any step, except how its segments are cut. A chunk that
takes long is cut further (`running.chunks`): that changes when the event loop gets its turn, not what is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from itertools import accumulate, chain, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from ...errors import PartitaError, of_kernel
from ...graph.dtypes import DataType
from .call_sites import NameInCall, add_calls
from .instructions import holds
from .numbering import NodeNumber, SegmentNumber, SlotNumber
from .transfers import NO_MESSAGES, TransferMessages

if TYPE_CHECKING:
    from ...devices.kernels.registry import Start
    from ...graph.ops.properties import NodeProperties
    from .instructions import Instruction, Slots

Chunk = list["Instruction"]
NO_CHUNKS = frozenset[int]()
"""the same for all segments that have learnt nothing: an empty set of each would be one more object to collect"""


@dataclass(frozen=True, slots=True)
class FeedSlot:
    """Feed number `index` is stored in `slot`; slot 0 when no node reads it."""

    index: int
    slot: SlotNumber
    dtype: DataType


@dataclass(frozen=True, slots=True)
class Result:
    """Fetch number `index` is in `slot` at the end of the step."""

    index: int
    slot: SlotNumber
    dtype: DataType


class Arrival(NamedTuple):
    """A message: it is received under `key` and stored in `slot`; then `segments` wait for one thing less.

    A message of more than one tensor (`size`) is a bundle; they go to `slot` and the slots after it.
    """

    key: str
    slot: SlotNumber
    size: int
    segments: tuple[SegmentNumber, ...]


@dataclass(frozen=True, slots=True)
class Arrivals:
    """The arrivals of a plan as columns of what `Arrival` has: a message each would be one more object to collect."""

    keys: list[str] = field(default_factory=list)
    slots: list[SlotNumber] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    segments: list[tuple[SegmentNumber, ...]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.keys)

    def __iter__(self) -> Iterator[Arrival]:
        return map(Arrival, self.keys, self.slots, self.sizes, self.segments)

    def __getitem__(self, number: int) -> Arrival:
        return Arrival(self.keys[number], self.slots[number], self.sizes[number], self.segments[number])


class Expected(NamedTuple):
    """The type that must arrive in `slot` for the receive `node`, whose sender was not compiled together with it."""

    slot: SlotNumber
    dtype: DataType
    node: NodeNumber


@dataclass(slots=True)
class Segment:
    """Instructions in order, cut into chunks between which the executor looks at the clock.

    `waits` counts the receives and segments that come first, `unlocks` are the segments that wait for this one, and
    `origins` are the nodes of the instructions. `slow` has the identity of every chunk that is a single kernel and took
    so long the last time that a worker thread should run it, `reusing` that of every chunk which reuses buffers,
    `slow_once` that of every chunk that took long once, which may have been an accident. `joinable` counts by identity
    how often in a row a chunk was fast that may join a neighbour, `on_trial` the runs that are left until a chunk keeps
    only those instructions which have reused a buffer.
    """

    chunks: tuple[Chunk, ...]
    origins: Sequence[NodeNumber]
    waits: int = 0
    unlocks: tuple[SegmentNumber, ...] = ()
    slow: frozenset[int] = NO_CHUNKS
    reusing: frozenset[int] = NO_CHUNKS
    slow_once: frozenset[int] = NO_CHUNKS
    joinable: dict[int, int] = field(default_factory=dict)
    on_trial: dict[int, int] = field(default_factory=dict)
    has_run: bool = False

    def set_apart_file_waits(self, properties: Sequence[NodeProperties]) -> None:
        """Makes chunks of their own of kernels that wait for files: threads run them from the first step on."""
        apart = {at for at, node in enumerate(self.origins) if properties[node].op_def.record.waits_for_files}
        if apart:
            starts = self._cut({*apart, *(position + 1 for position in apart)})
            self.slow = frozenset(
                id(chunk) for start, chunk in zip(starts, self.chunks, strict=False) if start in apart
            )

    def _cut(self, positions: set[int]) -> list[int]:
        """Cuts the chunks at further positions; returns where all of them begin, and where the last one ends."""
        instructions = list(chain.from_iterable(self.chunks))
        cuts = sorted({0, *accumulate(map(len, self.chunks)), *positions})
        self.chunks = tuple(instructions[start:end] for start, end in pairwise(cuts))
        return cuts


@dataclass(frozen=True, slots=True)
class Plan:
    """One partition, ready to run: copy `template`, store the arguments, run the segments, read the results."""

    device: str
    template: Slots
    names: list[str] = field(repr=False)
    properties: list[NodeProperties] = field(repr=False)
    _: KW_ONLY
    arguments: tuple[FeedSlot, ...] = ()
    results: tuple[Result, ...] = ()
    arrivals: Arrivals = field(default_factory=Arrivals)
    segments: tuple[Segment, ...] = ()
    keeps_inputs: bool = False
    """whether a node may keep its inputs after the step (variables do), so that feeds must be copied"""
    deferred: tuple[DeferredNode, ...] = ()
    unchecked: Mapping[int, tuple[Expected, ...]] = field(default_factory=dict)
    """by number of the arrival: types that only the run can check"""
    sends: TransferMessages = NO_MESSAGES
    repeats: bool = False
    """whether the plan is one iteration of a loop"""
    outputs: tuple[tuple[int, ...], ...] = ()
    """by node, the slots of its outputs; only in plans for traces"""
    arrival_numbers: dict[str, int] = field(init=False, repr=False)
    """numbers of the arrivals by key, of the first if several have it"""
    repeated: tuple[int, ...] = field(init=False)
    """the arrivals whose keys others have too: a graph may come with transfers of its own, right or wrong"""
    waits: list[int] = field(init=False, repr=False)
    """by segment, how many receives and segments come first"""

    def __post_init__(self) -> None:
        keys = self.arrivals.keys
        numbers, repeated = dict(zip(keys, range(len(keys)), strict=True)), tuple[int, ...]()
        if len(numbers) < len(keys):
            numbers.clear()
            repeated = tuple(n for n, key in enumerate(keys) if numbers.setdefault(key, n) != n)
        object.__setattr__(self, "arrival_numbers", numbers)
        object.__setattr__(self, "repeated", repeated)
        object.__setattr__(self, "waits", [segment.waits for segment in self.segments])

    def __str__(self) -> str:
        """The text that `printer` describes."""
        from .printer import plan_text

        return plan_text(self)

    @property
    def num_instructions(self) -> int:
        """How many instructions a step runs."""
        return sum(len(segment.origins) for segment in self.segments)

    def origin(self, segment: Segment, instruction: int) -> tuple[str, str]:
        """Name and op of the node that an instruction belongs to."""
        node = segment.origins[instruction]
        return str(self.names[node]), self.properties[node].op

    def locate_error(self, segment: Segment, instruction: int, error: Exception) -> PartitaError:
        """The error of an instruction, with node, op and device, and the calls of functions taken in."""
        node, op = self.origin(segment, instruction)
        located = of_kernel(op, error).located(node=node, op=op, device=self.device)
        return add_calls(self.names[segment.origins[instruction]], located)

    def leave(self, node: NodeNumber, error: PartitaError) -> PartitaError:
        """The error of a loop or choice that stands for a node, with the calls of functions taken in."""
        name = self.names[node]
        if not isinstance(name, NameInCall):
            return error  # is located by whoever runs the plan
        return add_calls(name, error.located(node=str(name), op=self.properties[node].op, device=self.device))


@dataclass(frozen=True, slots=True)
class DeferredNode:
    """A deferred node: its work, the slots of its outputs, and the segments that wait for them.

    `work` is a loop, or a kernel that starts what the node waits for. `flag` is 0 or
    the slot of its deadness flag.
    """

    work: Start | LocalLoop | DistributedLoop
    outputs: tuple[SlotNumber, ...]
    flag: SlotNumber
    segments: tuple[SegmentNumber, ...]
    node: NodeNumber


class Inner(NamedTuple):
    """A loop or a choice in a loop: the slots of its inputs and outputs, and those that must be alive for it to run.

    `node` is the one that it stands for.
    """

    work: LocalLoop | LocalChoice
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    watched: tuple[int, ...]
    node: NodeNumber


Stretch = Segment | Inner
"""instructions that run without a look at the clock, or what is a loop or a choice itself"""


@dataclass(frozen=True, slots=True)
class LocalLoop:
    """A loop that one device runs by itself. All iterations use the same slots, one after the other.

    `arguments` are the slots of the initial variables and of the invariants; `variables` those that get `next_values`
    at the end of an iteration; `counted` those of the indices of the inputs that Merges took; `exits` those of the
    values that leave. `holds` tells from the predicate whether the loop goes on.
    """

    plan: Plan
    condition: tuple[Stretch, ...]
    body: tuple[Stretch, ...]
    predicate: int
    arguments: tuple[int, ...]
    counted: tuple[int, ...]
    variables: tuple[int, ...]
    next_values: tuple[int, ...]
    exits: tuple[int, ...]
    holds: Callable[[Any], bool] = holds  # Any: a predicate of any type
    segments: tuple[Segment, ...] = field(init=False, repr=False)
    """those of `condition` and `body`, without inner loops"""

    def __post_init__(self) -> None:
        stretches = (*self.condition, *self.body)
        object.__setattr__(self, "segments", tuple(s for s in stretches if isinstance(s, Segment)))


@dataclass(frozen=True, slots=True)
class ChoiceBranch:
    """One of the functions that a choice calls, with slots of its own: those of its arguments and of its results."""

    plan: Plan
    stretches: tuple[Stretch, ...]
    arguments: tuple[int, ...]
    results: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LocalChoice:
    """A conditional that one device runs by itself: `choose` tells the branch by the first input, others go into it."""

    branches: tuple[ChoiceBranch, ...]
    choose: Callable[[Any], int]  # Any: a predicate of any type


@dataclass(frozen=True, slots=True)
class DistributedLoop:
    """A device's share in a loop over several devices. Slots are those of `plan`, one iteration.

    `arguments` are the slots of the variables, then of the invariants; `counted` as in `LocalLoop`. `next_values` picks
    the next values of the variables; `exits` are pairs of the number of an exit and its slot.

    The device begins iteration k + `parallel` only when others have received what it sent in iteration k: the messages
    with the stems `awaited`, one for each device that it sends to. So a device that waits for nobody is not far ahead.
    """

    frame: str
    plan: Plan
    num_variables: int
    arguments: tuple[int, ...]
    counted: tuple[int, ...]
    next_values: Callable[[Slots], Sequence[Any]]
    exits: tuple[tuple[int, int], ...]
    parallel: int
    awaited: tuple[str, ...]
