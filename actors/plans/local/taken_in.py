"""Functions joined to one level that their caller runs itself, as if they had been inlined.

The two functions of a While become a loop of one device, the branches of a conditional a choice:

    While(i, n)     cond(i, n) = i < n     body(i, n) = i + 1, n
    level           i, n: arguments        Less(i, n) -> predicate        i' = AddV2(i, 1)        i', n: next values
    loop            condition [Less]       body [AddV2]

Nodes are added in the order in which they run, so control edges only tell which nodes die with which. Which functions
are taken in, and with which arguments, decides `running.taken_in`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ....errors import PartitaError
from ....graph.checking import are_checked
from ....graph.columns import CONTROL_SLOT
from ....graph.dtypes import base_type, is_ref
from ....graph.ops.properties import NodeProperties, properties_of
from ..binding import check_complete
from ..levels import Deferred, LevelBuilder
from ..plan import ChoiceBranch, LocalChoice, LocalLoop
from .stretches import Stretches

if TYPE_CHECKING:
    from ....graph.dtypes import DataType
    from ..binding import Binder

_SYNTHETIC = -1  # the id of nodes that the graph of the caller does not have


class LevelOutput(NamedTuple):
    """An output of a node of the level, by the numbers of both."""

    node: int
    output: int


class NotTakenIn(Exception):
    """A function that its caller cannot run itself."""


class TakenIn:
    """The level while functions are added to it."""

    def __init__(self, binder: Binder) -> None:
        self._binder = binder
        self._level = LevelBuilder()
        self._inner: dict[str, LocalLoop | LocalChoice] = {}
        self._kinds: list[NodeProperties] = []

    @property
    def num_nodes(self) -> int:
        """How many nodes have been added."""
        return len(self._kinds)

    def arguments(self, types: Sequence[DataType]) -> list[LevelOutput]:
        """Adds arguments of these types."""
        kinds = [properties_of("_Arg", {"T": dtype, "index": index}) for index, dtype in enumerate(types)]
        return [LevelOutput(self.add(f"arg{index}", kind, ()), 0) for index, kind in enumerate(kinds)]

    def add(self, name: str, kind: NodeProperties, inputs: Sequence[LevelOutput], after: Sequence[int] = ()) -> int:
        """The number of a new node, which takes these inputs and dies with the nodes `after` which it runs."""
        node = self._level.add(_SYNTHETIC, name, kind)
        self._kinds.append(kind)
        for port, source in enumerate(inputs):
            self._level.connect(*source, node, port)
        for before in after:
            self._level.connect(before, CONTROL_SLOT, node, CONTROL_SLOT)
        return node

    def read(self, source: LevelOutput) -> LevelOutput:
        """The tensor that a function gets or gives; of a variable what it is now."""
        dtype = self._kinds[source.node].output_types[source.output]
        if not is_ref(dtype):
            return source
        return LevelOutput(self.add("read", properties_of("Identity", {"T": base_type(dtype)}), [source]), 0)

    def add_work(
        self,
        name: str,
        kind: NodeProperties,
        work: LocalLoop | LocalChoice,
        inputs: Sequence[LevelOutput],
        after: Sequence[int],
    ) -> int:
        """The number of a new node that stands for a loop or a choice of its own."""
        deferred = Deferred(kind)
        deferred.frame = f"inner {len(self._inner)}"
        self._inner[deferred.frame] = work
        return self.add(name, deferred, [*map(self.read, inputs)], after)

    def loop(
        self,
        results: Sequence[LevelOutput],
        types: Sequence[DataType],
        first_of_body: int,
        holds: Callable[[Any], bool],
    ) -> LocalLoop:  # Any: a predicate of any type
        """The finished loop; `results` are the next values of the variables, of these `types`, then the predicate."""
        self._add_results(results, types)
        level = self._laid_out()
        before, body = level.assemble([node >= first_of_body for node in range(self.num_nodes)])
        arguments, slot_of = _ascending(level.arguments), level.results
        following = [slot_of[index] for index in range(len(arguments))]
        moved = [(slot, value) for slot, value in zip(arguments, following, strict=True) if slot != value]
        return self._checked(
            LocalLoop(
                plan=level.plan(),
                condition=tuple(before),
                body=tuple(body),
                predicate=slot_of[len(arguments)],
                arguments=arguments,
                counted=(),
                variables=tuple(slot for slot, _ in moved),
                next_values=tuple(value for _, value in moved),
                exits=arguments,
                holds=holds,
            )
        )

    def branch(self, results: Sequence[LevelOutput], types: Sequence[DataType]) -> ChoiceBranch:
        """The finished branch of a choice, with results of these types."""
        self._add_results(results, types)
        level = self._laid_out()
        stretches, _ = level.assemble([False] * self.num_nodes)
        self._check_complete()
        return ChoiceBranch(level.plan(), tuple(stretches), _ascending(level.arguments), _ascending(level.results))

    def _add_results(self, results: Sequence[LevelOutput], types: Sequence[DataType]) -> None:
        for index, (source, dtype) in enumerate(zip(results, types, strict=True)):
            self.add(f"ret{index}", properties_of("_Retval", {"T": dtype, "index": index}), [source])

    def _laid_out(self) -> Stretches:
        level = Stretches(self._level.columns(), self._binder, self._inner)
        level.lay_out()
        return level

    def _checked(self, loop: LocalLoop) -> LocalLoop:
        self._check_complete()
        if are_checked():
            from ..invariants import check_local_work

            check_local_work(loop)
        return loop

    def _check_complete(self) -> None:
        try:
            check_complete([self._binder])
        except PartitaError:
            raise NotTakenIn from None  # the call raises the same


def _ascending(slots: Mapping[int, int]) -> tuple[int, ...]:
    return tuple(slots[index] for index in sorted(slots))
