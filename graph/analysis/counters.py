"""Values as functions of the number i of an iteration: what a loop's counter is, and when its predicate turns false.

A number is `start + step * i`, plus a loop variable while it is not known yet. A truth value is the set of iterations
in which it holds, as intervals. So a loop of 100,000 iterations is counted without going through them:

    i = 3; while i < 10: i += 2         i = 3 + 2 i         i < 10 in [0, 4)         4 iterations

Rules say what an op makes of such values (`counter_rule`, in modules `*_counters` of the families).

Numbers are exact: integers, or fractions where a float is no integer. A float that changes by a fraction is rounded in
every iteration, so it is not followed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias, TypeVar

from ..dtypes import DataType
from ..ops.op_table import FAMILIES, OpTable

V = TypeVar("V", bound=Hashable)
Exact: TypeAlias = "int | Fraction"
Interval = tuple[int, int | None]
"""from the first number to before the second; None has no end"""


@dataclass(frozen=True, slots=True)
class Number:
    """`start + step * i`, plus the loop variable `variable` if it is not None."""

    start: Exact
    step: Exact = 0
    variable: Hashable = None

    @property
    def is_constant(self) -> bool:
        """Whether it is the same in every iteration, and known."""
        return self.step == 0 and self.variable is None

    def at(self, iteration: int) -> Number:
        """The value in one iteration."""
        return Number(self.start + self.step * iteration, 0, self.variable)


@dataclass(frozen=True, slots=True)
class Truth:
    """A truth value: the iterations in which it holds, as ascending intervals that do not touch."""

    holds: tuple[Interval, ...]

    @property
    def first_false(self) -> int | None:
        """The first iteration in which it does not hold, None if it always holds."""
        if not self.holds or self.holds[0][0] > 0:
            return 0
        return self.holds[0][1]

    def at(self, iteration: int) -> Truth:
        """The value in one iteration, as one that is always the same."""
        is_true = any(low <= iteration and (high is None or iteration < high) for low, high in self.holds)
        return ALWAYS if is_true else NEVER


ALWAYS = Truth(((0, None),))
NEVER = Truth(())
Value: TypeAlias = "Number | Truth | None"
"""None is unknown"""
Inputs: TypeAlias = "Callable[[int], Value]"
"""the values of a node's inputs, by port"""
CounterRule: TypeAlias = "Callable[[Inputs, DataType], Value]"
"""the value of a node's first output, of that element type"""
COUNTERS: OpTable[CounterRule] = OpTable("a counter rule", FAMILIES, "_counters", via=__name__)


def counter_rule(*ops: str) -> Callable[[CounterRule], CounterRule]:
    """Registers the decorated rule for each of `ops`; AlreadyExistsError for an op that has one."""

    def register(rule: CounterRule) -> CounterRule:
        for op in ops:
            COUNTERS.add(op, rule)
        return rule

    return register


def negated(truth: Truth) -> Truth:
    """NOT."""
    holds, begin = [], 0
    for low, high in truth.holds:
        if begin < low:
            holds.append((begin, low))
        if high is None:
            return Truth(tuple(holds))
        begin = high
    return Truth((*holds, (begin, None)))


def both(a: Truth, b: Truth) -> Truth:
    """AND."""
    holds = []
    for low, high in a.holds:
        for other_low, other_high in b.holds:
            begin = max(low, other_low)
            ends = [end for end in (high, other_high) if end is not None]
            end = min(ends) if ends else None
            if end is None or begin < end:
                holds.append((begin, end))
    return Truth(tuple(sorted(holds, key=lambda interval: interval[0])))


def either(a: Truth, b: Truth) -> Truth:
    """OR."""
    return negated(both(negated(a), negated(b)))


def less(a: Number, b: Number) -> Truth | None:
    """a < b."""
    distance = minus(b, a)
    if distance is None or distance.variable is not None:
        return None
    start, step = distance.start, distance.step
    if step == 0:
        return ALWAYS if start > 0 else NEVER
    crossing = Fraction(-start) / Fraction(step)  # where the distance is 0
    if step > 0:
        return Truth(((max(0, crossing.__floor__() + 1), None),))
    end = crossing.__ceil__()
    return Truth(((0, end),)) if end > 0 else NEVER


def plus(a: Number, b: Number) -> Number | None:
    """a + b; None if both have a variable."""
    if a.variable is not None and b.variable is not None:
        return None
    return Number(a.start + b.start, a.step + b.step, b.variable if a.variable is None else a.variable)


def minus(a: Number, b: Number) -> Number | None:
    """a - b; None if b has a variable, unless a has the same."""
    if b.variable is not None:
        return Number(a.start - b.start, a.step - b.step) if a.variable == b.variable else None
    return Number(a.start - b.start, a.step - b.step, a.variable)


def times(a: Number, b: Number) -> Number | None:
    """a * b; None unless one is a constant, and the other without variable."""
    for factor, other in ((a, b), (b, a)):
        if factor.is_constant and other.variable is None:
            return Number(other.start * factor.start, other.step * factor.start)
    return None


def lines(starts: Mapping[V, Value], following: Callable[[Mapping[V, Value]], Mapping[V, Value]]) -> dict[V, Value]:
    """The variables of a loop by the number of the iteration, from their first values.

    `following` gives the next values from present ones. A variable that is neither a line nor a constant is unknown.
    """
    variables: dict[V, Value] = {
        at: None if isinstance(start, Truth) else Number(0, 0, at) for at, start in starts.items()
    }
    known: dict[V, Value] = {}
    while True:
        constants = {at: value for at, value in known.items() if isinstance(value, Number) and value.is_constant}
        following_values = following({**variables, **constants})
        found = {at: _closed(starts[at], following_values[at], at) for at in starts if at not in constants}
        known.update(found)
        # A step may be a variable that never changes: now that it is known, those that it changes can be found.
        if not any(isinstance(value, Number) and value.is_constant for value in found.values()):
            return known


def _closed(start: Value, following: Value, variable: Hashable) -> Value:
    """A loop variable that is `start` at first and then always `following`, which may be an offset to `variable`."""
    if isinstance(start, Truth) or isinstance(following, Truth):
        return start if start == following else None
    if start is None or following is None or not start.is_constant or following.step != 0:
        return None
    if following.variable is None:
        return start if following.start == start.start else None
    if following.variable != variable or (following.start and not isinstance(start.start + following.start, int)):
        return None
    return Number(start.start, following.start)
