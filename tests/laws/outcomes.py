"""What comes out of a drawn case of a law, and the counts that a command over many cases prints."""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

EQUAL, DIFFERENT, REFUSED = "equal", "different", "refused"


class Outcome(NamedTuple):
    """Whether a case is equal, different or refused, and why."""

    kind: str
    why: str = ""

    @classmethod
    def of_error(cls, error: Exception) -> Outcome:
        """An exception counts as different."""
        return cls(DIFFERENT, f"{type(error).__name__}: {error}")


class Tally:
    """Counts outcomes, and refusals by reason; what matches `varies` in a reason does not tell reasons apart."""

    def __init__(self, varies: str = r"'[^']*'|\d+") -> None:
        self._varies = varies
        self._kinds, self._reasons = Counter[str](), Counter[str]()

    def add(self, outcome: Outcome) -> None:
        """Counts one more."""
        self._kinds[outcome.kind] += 1
        if outcome.kind == REFUSED:
            self._reasons[re.sub(self._varies, "..", outcome.why)] += 1

    def report(self) -> int:
        """Prints the counts; how many differ."""
        for reason, count in self._reasons.most_common():
            print(f"refused {count}: {reason}")
        print(", ".join(f"{self._kinds[kind]} {kind}" for kind in (EQUAL, DIFFERENT, REFUSED)))
        return self._kinds[DIFFERENT]
