"""The numbers of a serving framework, three each, fitted to measured deployments (`frameworks.toml`).

gap        time of a layer in a pass that no kernel of `passes` accounts for: launches, small kernels, the host
prefill    what a prompt takes, by what its kernels alone would
burst      how much requests come together: 0, one after another all the time; 1, all at once and no further ones
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from ...errors import NotFoundError
from ...graph.suggestions import suggestion


class FrameworkNumbers(NamedTuple):
    """What is fitted of a framework; the spreads are half of 80 % intervals in log time."""

    overlap: float
    prefill: float
    burst: float
    token_spread: float
    first_token_spread: float


@cache
def _table() -> Mapping[str, Mapping[str, Any]]:  # Any: what TOML holds
    return tomllib.loads((files(__package__) / "frameworks.toml").read_text("utf-8"))


def framework_names() -> list[str]:
    """The frameworks that have numbers."""
    return sorted(_table())


def framework_numbers(name: str) -> FrameworkNumbers:
    """The numbers of a framework; NotFoundError with the nearest name otherwise."""
    table = _table()
    if name not in table:
        known = framework_names()
        hint = suggestion(name, known) or f"; there are {', '.join(known)}"
        raise NotFoundError(f"no numbers of a serving framework {name!r}{hint}")
    return FrameworkNumbers(*(float(table[name][field]["value"]) for field in FrameworkNumbers._fields))
