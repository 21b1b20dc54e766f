"""What a search looked at, in lines: how many configurations, the impossible ones by reason, what was assumed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..screen import Screen


def show_search(configurations: int, impossible: Mapping[str, int], assumptions: Sequence[str], screen: Screen) -> None:
    """Prints them, the most frequent reason first."""
    fitting = configurations - sum(impossible.values())
    screen.line(f"searched {configurations:,} configurations, of which {fitting:,} are possible and fit")
    reasons = sorted(impossible.items(), key=lambda it: -it[1])
    width = max((len(f"{count:,}") for _, count in reasons), default=0)
    for reason, count in reasons:
        screen.line(f"  {count:>{width},}  {reason}")
    screen.line("left out, and assumed")
    for text in assumptions:
        screen.line(f"  {text}")
