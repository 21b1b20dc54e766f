"""Ops that wait for the length of a test, so that deferred kernels can be put in the place of theirs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from partita.devices.kernels.registry import StartFactory, table
from partita.graph.ops import record
from partita.graph.ops.registry import lookup_op


def defer(patch: pytest.MonkeyPatch, factory: StartFactory, *ops: str) -> None:
    """Gives `ops` the deferred kernel that `factory` makes until `patch` is undone."""
    for op in ops:
        patch.setitem(table(), op, factory)
        waiting = replace(record.record_of(op), waits=True)
        patch.setitem(record._records, op, waiting)
        patch.setitem(vars(lookup_op(op)), "record", waiting)  # where signatures keep theirs
