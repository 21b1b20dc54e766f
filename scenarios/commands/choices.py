"""What decides how often the nodes of a step run, given by flags: trip counts of loops, and branches.

Both are written NAME=N, or NAME=N,M for one number per iteration of the loop around it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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
