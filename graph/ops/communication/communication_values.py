"""Values of collectives that are known before a run: the group that a device is assigned to."""

from __future__ import annotations

import numpy as np

from ...analysis.value_rules import InferredValues, ValueContext, value_rule


@value_rule("CollectiveAssignGroupV2")
def group(c: ValueContext) -> InferredValues | None:
    """Size and key of the row that has the device."""
    known = c.known()
    if known is None or known[0].ndim != 2:
        return None
    assignment, device, base_key = known
    rows = np.flatnonzero((assignment == device).any(axis=1))
    if not len(rows):
        return None
    return [np.array(assignment.shape[1], np.int32), np.array(base_key + rows[0], np.int32)]
