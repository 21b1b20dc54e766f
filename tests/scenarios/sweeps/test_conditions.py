"""Conditions as texts mean what Python means, and run nothing."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError
from partita.scenarios.sweeps.conditions import parsed_condition

NUMBERS = st.integers(-3, 3).map(str)
EXPRESSIONS = st.recursive(
    NUMBERS | st.sampled_from(["a", "b"]),
    lambda inner: (
        st.builds("({} {} {})".format, inner, st.sampled_from(["+", "-", "*"]), inner)
        | st.builds("(-{})".format, inner)
    ),
    max_leaves=6,
)
CONDITIONS = st.recursive(
    st.builds("{} {} {}".format, EXPRESSIONS, st.sampled_from(["<", "<=", "==", "!=", ">", ">="]), EXPRESSIONS)
    | st.builds("{} in [1, 2, {}]".format, EXPRESSIONS, EXPRESSIONS)
    | st.builds("{} < {} <= {}".format, EXPRESSIONS, EXPRESSIONS, EXPRESSIONS),
    lambda inner: (
        st.builds("({} and {})".format, inner, inner)
        | st.builds("({} or not {})".format, inner, inner)
        | st.builds("({} if {} else {})".format, inner, inner, inner)
    ),
    max_leaves=5,
)


@given(CONDITIONS, st.integers(-3, 3), st.integers(-3, 3))
def test_a_condition_means_what_python_means(text: str, a: int, b: int) -> None:
    """Drawn ones against `eval`."""
    assert parsed_condition(text, ["a", "b"])({"a": a, "b": b}) is bool(eval(text, {"a": a, "b": b}))


def test_names_may_have_dashes_and_dots() -> None:
    """As flags have; a dash is written as an underscore."""
    holds = parsed_condition("split.tp * global_batch // 2 % 3 / 2 == +1 and order not in ('x',)", NAMES)
    assert holds({"split.tp": 2, "global-batch": 5, "order": "ready"})
    assert not holds({"split.tp": 2, "global-batch": 5, "order": "x"})


NAMES = ["split.tp", "global-batch", "order"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("__import__('os').getcwd()", "more than a condition can say"),
        ("order.upper", "there is no axis 'order.upper'"),
        ("global_btch > 1", "did you mean 'global_batch'"),
        ("[x for x in order]", "more than a condition can say"),
        ("order[0] == 'x'", "more than a condition can say"),
        ("lambda: 1", "more than a condition can say"),
        ("2 ** 10**9 > 1", "more than a condition can say"),
        ("order is None", "more than a condition can say"),
        ("b'x' == order", "more than a condition can say"),
        ("1 <", "cannot be read"),
        ("(" * 500, "cannot be read"),
        ("", "cannot be read"),
    ],
)
def test_what_is_no_condition_is_refused(text: str, words: str) -> None:
    """Before any point is looked at."""
    with pytest.raises(InvalidArgumentError, match=words.replace("(", r"\(")):
        parsed_condition(text, NAMES)


def test_a_condition_that_has_no_value_names_the_point() -> None:
    """Such as a text that is compared with a number."""
    with pytest.raises(InvalidArgumentError, match="has no value at order='ready'"):
        parsed_condition("order > 1", ["order"])({"order": "ready"})
    with pytest.raises(InvalidArgumentError, match="has no value at n=0"):
        parsed_condition("1 / n > 1", ["n"])({"n": 0})
