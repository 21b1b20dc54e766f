"""When the nodes of a step ran."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ....graph.arrays import Flags, Numbers

NEVER = -1


@dataclass(frozen=True, slots=True)
class Times:
    """Columns by node, in ns; `NEVER` for nodes that did not run. `order` puts the nodes of one instant in order.

    A receive begins when its copy begins and ends when its tensor has arrived.
    """

    start_ns: Numbers
    end_ns: Numbers
    order: Numbers

    def ran(self) -> Flags:
        """By node: whether it ran."""
        return np.not_equal(self.start_ns, NEVER)

    def makespan_ns(self) -> int:
        """The end of the step."""
        return int(np.max(self.end_ns, initial=0))
