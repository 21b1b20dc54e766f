"""What decides how often the nodes of a step run, given by flags: trip counts of loops, and branches; and their order.

Counts and branches are written NAME=N, or NAME=N,M for one number per iteration of the loop around it.

    --order critical-path               what the longest way leads from to the end of the step comes first
    --priority loss=2 --priority a=-1   the highest first; nodes that are not named have 0
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

from ...devices.timing.ordering.order import Order, checked_order
from .failure import ConfigurationError

Choice = int | list[int]
_MOST = 2**31 - 1  # a loop counter of TensorFlow is an int32


@dataclass(frozen=True, slots=True)
class ChoiceOptions:
    """Trip counts by frame, and branches by node."""

    trip_counts: Mapping[str, Choice]
    branches: Mapping[str, Choice]


def read_choices(trips: Sequence[str], branches: Sequence[str]) -> ChoiceOptions:
    """The texts of `--trips` and `--branch`; ConfigurationError for one of another form, or two for one name."""
    return ChoiceOptions(
        _choices(trips, "--trips", "FRAME=N", "how often the loop runs"),
        _choices(branches, "--branch", "NODE=K", "which branch it takes, 0 the first; of an If, 1 is then"),
    )


def _choices(texts: Sequence[str], flag: str, form: str, what: str) -> dict[str, Choice]:
    choices: dict[str, Choice] = {}
    for text in texts:
        name, _, numbers = text.rpartition("=")  # names of frames may have an "=" too
        parts = [part.strip() for part in numbers.split(",")]
        if not name or not all(part.isascii() and part.isdecimal() and int(part) <= _MOST for part in parts):
            example = f"{flag} {name or form.partition('=')[0].lower()}=3"
            raise ConfigurationError(
                f"{flag} {text!r} is not {form}; write {what}, such as {example}, "
                f"or {example},5 for one number per iteration of the loop around it"
            )
        if name in choices:
            raise ConfigurationError(f"{flag}: {name!r} is given twice; give one number for it, or a list in one flag")
        choices[name] = int(parts[0]) if len(parts) == 1 else [int(part) for part in parts]
    return choices


def read_order(order: str | None, priorities: Sequence[str]) -> Order:
    """The order that the flags ask for; ConfigurationError for both flags together, and for what is no priority."""
    if not priorities:
        return checked_order(order or "ready")
    if order is not None:
        raise ConfigurationError("--order and --priority exclude each other; give one of them")
    given: dict[str, float] = {}
    for text in priorities:
        name, _, number = text.rpartition("=")
        if not name or (priority := _number(number)) is None:
            raise ConfigurationError(
                f"--priority {text!r} is not NODE=NUMBER; write a node and a finite number, such as "
                f"{name or 'node'}=1, the highest is first"
            )
        if name in given:
            raise ConfigurationError(f"--priority: {name!r} is given twice; give one number for it")
        given[name] = priority
    return given


def _number(text: str) -> float | None:
    """A finite number, None for another text."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if isfinite(number) else None


def order_text(order: Order) -> str:
    """What the order is called in a report."""
    if isinstance(order, str):
        return order
    return ", ".join(f"{name}={priority:g}" for name, priority in order.items())
