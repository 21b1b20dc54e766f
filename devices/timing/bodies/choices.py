"""How often loops run and which branches are taken: where that comes from, and the error that asks for what is missing.

Three sources, in this order: what the caller gives, what a trace tells, what follows from constants and shapes. A count
or branch is a number, or a list with an entry per iteration of the loops around (see `graph.analysis.trip_counts`).

    loops           by `frame_name`, which a lowered While has from its node; a While or For by its own name;
                    in a body `call/frame`
    conditionals    by the name of the If or Case; Switch nodes of a `tf.cond` by the node that yields the predicate.
                    The branches of an If are 1 (then) and 0 (else), those of a Case count from 0

What no source knows is collected while a step is planned, so that one error lists all of it:

    --trips while=N --branch cond=K
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import index
from typing import TYPE_CHECKING, Protocol, SupportsIndex

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.trip_counts import Count
from ....graph.suggestions import suggestion
from .existing import has_conditional, has_loop

if TYPE_CHECKING:
    from ....graph.analysis.joined import JoinedGraph

Counts = Mapping[str, "int | Sequence[int]"]
"""a count, or branch, by name"""


class Traced(Protocol):
    """What a trace tells: counts of loops and branches of conditionals, by the names that `Choices` has."""

    @property
    def trip_counts(self) -> Counts:
        """Counts by loop."""

    @property
    def branches(self) -> Counts:
        """Branches by conditional."""


class Choices:
    """The counts and branches of one step, as far as the caller or a trace gives them.

    Names that no loop or conditional has are refused when the step is planned, see `check`.
    """

    def __init__(self, trip_counts: Counts | None, branches: Counts | None, traced: Traced | None = None) -> None:
        """Raises InvalidArgumentError for a value that is no whole number, or negative."""
        self._trips = _checked("--trips", trip_counts)
        self._branches = _checked("--branch", branches)
        self._traced_trips: Counts = traced.trip_counts if traced is not None else {}
        self._traced_branches: Counts = traced.branches if traced is not None else {}
        self._loops: set[str] = set()  # names that were asked for
        self._conditionals: set[str] = set()
        self._missing: dict[str, str] = {}  # flag -> its description

    def trips(self, frame: str) -> Count | None:
        """The count of a loop, None if neither the caller nor the trace has it."""
        self._loops.add(frame)
        if frame in self._trips:
            return self._trips[frame]
        traced = self._traced_trips.get(frame)
        return traced if traced is None or isinstance(traced, int) else list(traced)

    def branch(self, names: Sequence[str], num_branches: int) -> Count | None:
        """The branch that a conditional takes, which may be known by several names; None if no source has it.

        Raises InvalidArgumentError for a number that no branch has, and if two names disagree.
        """
        self._conditionals.update(names)
        given = {name: self._branches[name] for name in names if name in self._branches}
        for name, value in given.items():
            wrong = [k for k in ([value] if isinstance(value, int) else value) if k >= num_branches]
            if wrong:
                listed = "0 (else) and 1 (then)" if num_branches == 2 else f"0 to {num_branches - 1}"
                raise InvalidArgumentError(f"--branch {name}={wrong[0]}: its branches are {listed}", node=name)
            if value != next(iter(given.values())):
                first = next(iter(given))
                raise InvalidArgumentError(f"--branch {first} and --branch {name} are one condition and must be equal")
        if given:
            return next(iter(given.values()))
        traced = next((self._traced_branches[name] for name in names if name in self._traced_branches), None)
        return traced if traced is None or isinstance(traced, int) else list(traced)

    def miss_trips(self, frame: str) -> None:
        """Notes that the count of a loop is unknown."""
        self._missing[f"--trips {frame}=N"] = f"how often the loop {frame!r} runs"

    def miss_branch(self, name: str, num_branches: int) -> None:
        """Notes that the branch of a conditional is unknown."""
        self._missing[f"--branch {name}=K"] = f"which of {num_branches} branches {name!r} takes"

    @property
    def is_missing(self) -> bool:
        """Whether a count or branch is missing."""
        return bool(self._missing)

    def check(self, graph: JoinedGraph) -> None:
        """Raises one InvalidArgumentError that lists what is missing; or one for a given name that nothing has.

        `graph` is that of the step, in which names are looked up that were not asked for.
        """
        for flag, what, given, known, exists in (
            ("--trips", "loop", self._trips, self._loops, has_loop),
            ("--branch", "conditional", self._branches, self._conditionals, has_conditional),
        ):
            for name in given.keys() - known:
                if not exists(graph, name):
                    hint = suggestion(name, sorted(known)) if known else "; the step has none"
                    raise InvalidArgumentError(f"{flag} {name}: no {what} has this name{hint}", node=name)
        self.check_missing()

    def check_missing(self) -> None:
        """Raises one InvalidArgumentError that lists what is missing."""
        if self._missing:
            raise InvalidArgumentError(
                f"the time of the step depends on {', '.join(self._missing.values())}; simulate with "
                f"{' '.join(self._missing)} (`trip_counts` and `branches` of simulate; one number, or one per "
                "iteration of the loops around), or with a trace"
            )


def entry(count: Count, turn: int, flag: str, name: str) -> int:
    """The entry of a list for one turn, or the number itself; InvalidArgumentError if the list is too short."""
    if isinstance(count, int):
        return count
    if turn >= len(count):
        raise InvalidArgumentError(
            f"{flag} {name}: {len(count)} entries, but the loops around it reach it more often; give one per iteration"
        )
    return count[turn]


def _checked(flag: str, given: object) -> dict[str, Count]:
    """What the caller gives, by name."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InvalidArgumentError(f"{flag}: {given!r} is not a mapping from names to numbers")
    for name in given:
        if not isinstance(name, str):
            raise InvalidArgumentError(f"{flag}: the name {name!r} is not a text")
    return {name: _numbers(flag, name, value) for name, value in given.items()}


def _numbers(flag: str, name: str, value: object) -> Count:
    plain: object = value.tolist() if isinstance(value, np.ndarray | np.generic) else value
    is_list = isinstance(plain, Iterable) and not isinstance(plain, str | bytes)
    numbers = []
    for item in plain if isinstance(plain, Iterable) and is_list else [plain]:
        number = item.item() if isinstance(item, np.generic) else item
        if not isinstance(number, SupportsIndex):
            raise InvalidArgumentError(f"{flag} {name}: {value!r} is no whole number, nor a list of them", node=name)
        numbers.append(index(number))
        if numbers[-1] < 0:
            raise InvalidArgumentError(f"{flag} {name}={numbers[-1]}: the number must not be negative", node=name)
    return numbers if is_list else numbers[0]
