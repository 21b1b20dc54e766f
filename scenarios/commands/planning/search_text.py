"""What a search looked at, in lines: how many configurations, the impossible ones by reason, what was assumed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence


def search_lines(configurations: int, impossible: Mapping[str, int], assumptions: Sequence[str]) -> Iterator[str]:
    """The most frequent reason first; what belongs to the line above it begins with two blanks."""
    fitting = configurations - sum(impossible.values())
    yield f"searched {configurations:,} configurations, of which {fitting:,} are possible and fit"
    reasons = sorted(impossible.items(), key=lambda it: -it[1])
    width = max((len(f"{count:,}") for _, count in reasons), default=0)
    for reason, count in reasons:
        yield f"  {count:>{width},}  {reason}"
    yield "left out, and assumed"
    for text in assumptions:
        yield f"  {text}"
