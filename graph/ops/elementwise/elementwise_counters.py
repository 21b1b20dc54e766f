"""Counter rules of arithmetic, comparisons, truth values and casts."""

from __future__ import annotations

from collections.abc import Callable

from ...analysis.counters import (
    ALWAYS,
    NEVER,
    CounterRule,
    Inputs,
    Number,
    Truth,
    Value,
    both,
    counter_rule,
    either,
    less,
    minus,
    negated,
    plus,
    times,
)
from ...dtypes import DataType


def _of_numbers(function: Callable[[Number, Number], Value]) -> CounterRule:
    """The rule of an op on two numbers."""

    def rule(inputs: Inputs, _: DataType) -> Value:
        a, b = inputs(0), inputs(1)
        return function(a, b) if isinstance(a, Number) and isinstance(b, Number) else None

    return rule


def _not(truth: Value) -> Truth | None:
    return negated(truth) if isinstance(truth, Truth) else None


def _equal(a: Number, b: Number) -> Truth | None:
    below, above = less(a, b), less(b, a)
    return None if below is None or above is None else both(negated(below), negated(above))


counter_rule("Add", "AddV2")(_of_numbers(plus))
counter_rule("Sub")(_of_numbers(minus))
counter_rule("Mul")(_of_numbers(times))
counter_rule("Less")(_of_numbers(less))
counter_rule("Greater")(_of_numbers(lambda a, b: less(b, a)))
counter_rule("LessEqual")(_of_numbers(lambda a, b: _not(less(b, a))))
counter_rule("GreaterEqual")(_of_numbers(lambda a, b: _not(less(a, b))))
counter_rule("Equal")(_of_numbers(_equal))
counter_rule("NotEqual")(_of_numbers(lambda a, b: _not(_equal(a, b))))
counter_rule("LogicalNot")(lambda inputs, _: _not(inputs(0)))


def _of_truths(function: Callable[[Truth, Truth], Truth], decides: Truth) -> CounterRule:
    """The rule of AND or OR; of an unknown value too, where the other one decides."""

    def rule(inputs: Inputs, _: DataType) -> Value:
        a, b = inputs(0), inputs(1)
        if decides in (a, b):
            return decides
        return function(a, b) if isinstance(a, Truth) and isinstance(b, Truth) else None

    return rule


counter_rule("LogicalAnd")(_of_truths(both, NEVER))
counter_rule("LogicalOr")(_of_truths(either, ALWAYS))


@counter_rule("Cast")
def cast(inputs: Inputs, dtype: DataType) -> Value:
    """Integers, and truth values as such, stay what they are."""
    value = inputs(0)
    if isinstance(value, Truth):
        return value if dtype is DataType.BOOL else None
    if value is None or dtype is DataType.BOOL:
        return None
    return value if isinstance(value.start, int) and isinstance(value.step, int) else None
