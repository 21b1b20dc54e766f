"""Everything that is played in a step: bodies of graphs and of the functions they call, with counts and branches.

A *script* says how one graph runs: its levels (see `levels`), how often each loop runs, which branch each condition
takes, and for every call the scripts of the called functions. For y = f(x), with f(x) = a loop over g(x):

    script of the step     level 0: x, f, y                    call f -> script of f
    script of f            levels 0, 1: its loop, count 10     call g -> script of g
    script of g            plain: one body

A script is planned once, however often it is played.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ....graph.analysis.trip_counts import Count, first_turns
from ....graph.ops.record import LOOPS, Calls
from .choices import entry
from .liveness import Variant
from .paths import CallPath

if TYPE_CHECKING:
    from .body import Body
    from .conditions import Answer
    from .levels import DecidedLevels


@dataclass(slots=True, eq=False)
class Call:
    """What a node that calls functions runs.

    A call has one script. An If or Case has one per branch, None for those that are never taken, and `answer` says
    which is. A While has those of its condition and of its body in turns, of which the last two are played again and
    again, and `count`. A For has those of its body, of which the last one is, and `count`; a map one and `count`.
    `numbers` has by index the arguments that are added to instances of collectives.
    """

    kind: Calls | None
    scripts: Sequence[Script | None]
    answer: Answer = 0
    count: Count = 1
    numbers: Mapping[int, int] = field(default_factory=dict)
    is_uniform: bool = field(init=False)
    """whether it runs alike in every iteration of the loops around"""

    def __post_init__(self) -> None:
        is_fixed = isinstance(self.answer, int) and isinstance(self.count, int)
        self.is_uniform = is_fixed and all(script is None or script.is_uniform for script in self.scripts)

    @property
    def has_choice(self) -> bool:
        """Whether it has a count or branch that is asked for by its name, or something that it runs has."""
        is_asked = self.kind in (Calls.IF, Calls.CASE, *LOOPS)
        return is_asked or any(script is None or script.has_choices for script in self.scripts)


def check_branch(answer: Answer, turn: int, path: CallPath, name: str) -> None:
    """InvalidArgumentError if an answer is a list without an entry for that turn; `name` is that of the conditional."""
    if isinstance(answer, Sequence):
        entry(answer, turn, "--branch", path.name(name))


@dataclass(eq=False)
class Script:
    """How one graph runs; without `levels` it is one body.

    `counts` is by frame, `answers` by condition, `calls` by joint number of the node that calls. `path` begins the
    names of loops. `is_uniform` says whether all iterations of its loops run alike: no count or branch differs between
    them. `has_choices` says whether it has counts or branches, which are asked for by names that depend on the path.
    """

    levels: DecidedLevels | None
    whole: Body
    path: CallPath = field(default_factory=CallPath)
    counts: Sequence[Count] = ()
    answers: Sequence[Answer] = ()
    calls: Mapping[int, Call] = field(default_factory=dict)
    is_uniform: bool = field(init=False)
    has_choices: bool = field(init=False)
    _first_turns: dict[int, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        calls, numbers = self.calls.values(), (*self.counts, *self.answers)
        self.is_uniform = all(isinstance(n, int) for n in numbers) and all(call.is_uniform for call in calls)
        self.has_choices = len(numbers) > 1 or any(call.has_choice for call in calls)

    @property
    def is_plain(self) -> bool:
        """Whether it is one body without loops, conditions and calls."""
        return self.levels is None

    def root(self, turn: int, iteration: int, *, is_last: bool = False) -> Body:
        """The body of what is outside all loops, in an iteration of the loop that calls the graph.

        `is_last` says that the loop only finds its end. InvalidArgumentError if a list of branches is too short.
        """
        if self.levels is None:
            return self.whole
        if not is_last:
            self._check_branches(0, turn)
        sides = self.levels.all[0].sides(self.answers, turn, iteration)
        return self.levels.body(0, Variant(True, True, sides, frozenset()))

    def iteration(self, frame: int, number: int, count: int, turn: int, dead: frozenset[int]) -> Body:
        """The body of iteration `number` of a loop that runs `count` times; `dead` are Enters that do not run.

        InvalidArgumentError if a list of branches is too short.
        """
        assert self.levels is not None  # a plain script has no frames
        if number < count:
            self._check_branches(frame, turn)
        sides = self.levels.all[frame].sides(self.answers, turn, number)
        return self.levels.body(frame, Variant(number < count, number == 0, sides, dead))

    def _check_branches(self, frame: int, turn: int) -> None:
        if self.is_uniform:
            return
        assert self.levels is not None  # a plain script has no conditions
        level = self.levels.all[frame]
        for condition in level.asked:
            check_branch(self.answers[condition], turn, self.path, level.conditions.all[condition].names[0])

    def count(self, frame: int, turn: int) -> int:
        """How often a loop runs in the activation with that turn; InvalidArgumentError if the list is too short."""
        return entry(self.counts[frame], turn, "--trips", self.loop_name(frame))

    def loop_name(self, frame: int) -> str:
        """The name of a loop, with the calls on the way to it."""
        assert self.levels is not None  # a plain script has no frames
        return self.path.name(self.levels.frames.all[frame].name)

    def first_turn(self, frame: int, turn: int) -> int:
        """The turn of the first iteration of a loop, in its activation with that turn."""
        count = self.counts[frame]
        if isinstance(count, int):
            return turn * count
        if frame not in self._first_turns:
            self._first_turns[frame] = first_turns(count, len(count))
        return self._first_turns[frame][turn]
