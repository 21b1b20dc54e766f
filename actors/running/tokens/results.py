"""The results of a run that goes node by node: what each `_Retval` has stored, by the number of the fetch.

A `_Retval` in a frame runs once an iteration. A second live value is an error, as in TensorFlow's `Session.run`, unless
the run `keeps_last`, as its callables do:

    fetched in iterations 0, 1, 2     keeps_last     result
    5, dead, dead                     no             5
    5, 6, dead                        no             InternalError
    5, 6, dead                        yes            6
    dead, dead, dead                  either         DEAD

The last value is that of the latest iteration, whatever order nodes ran in; of two in one iteration, the later.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ....graph.functions.call_frame import set_before
from ...plans.instructions import DEAD, read
from .frames import RunningFrame

IterationNumbers = tuple[int, ...]
"""the iterations of all frames that a node is in, the outermost first"""


@dataclass(slots=True)
class LiveResults:
    """The live values so far."""

    keeps_last: bool = False
    _values: dict[int, tuple[IterationNumbers, Any]] = field(default_factory=dict)  # Any: tensors of any type

    def store(self, index: int, when: IterationNumbers, value: Any) -> None:
        """Stores the value that a node has read; InternalError for a second one, unless the last is kept."""
        if index in self._values:
            if not self.keeps_last:
                raise set_before(index)
            if when < self._values[index][0]:
                return
        self._values[index] = when, value

    def get(self, index: int) -> Any:
        """The result of this number, a variable's present value; DEAD if no node has stored any."""
        return read(self._values[index][1]) if index in self._values else DEAD


def when(frame: RunningFrame, iteration: int) -> IterationNumbers:
    """When a node runs."""
    outer = () if frame.parent is None else when(frame.parent, frame.parent_iteration)
    return (*outer, iteration)
