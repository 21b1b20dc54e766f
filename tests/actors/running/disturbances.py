"""Kernels that a test controls: Tanh fails in a chosen call, Abs is deferred until the test ends its call.

Each deferred call is ended once; calls whose step has ended are removed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any

import numpy as np
import pytest
import trio

from partita.devices.kernels.registry import Call, Construction, Kernel, Start, table
from partita.errors import InvalidArgumentError
from tests.actors.waiting_ops import defer

FAILING, DEFERRED = "Tanh", "Abs"


@dataclass
class Disturbance:
    """Replaces two kernels: Tanh fails in call number `fails_at`, Abs outputs its input at once or from `clerk`.

    `calls` counts the calls of Tanh, `turns` the turns that `clerk` had.
    """

    random: Random
    calls: int = 0
    fails_at: int = -1
    turns: int = 0
    pending: dict[Call, Any] = field(default_factory=dict)

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """Replaces the two kernels until `patch` is undone."""
        patch.setitem(table(), FAILING, self.failing)
        defer(patch, self.deferred, DEFERRED)

    def failing(self, _node: Construction) -> Kernel:
        """The factory of a kernel that counts its calls."""

        def tanh(value: Any) -> Any:
            self.calls += 1
            if self.calls == self.fails_at:
                raise InvalidArgumentError("told to fail")
            return np.tanh(value)

        return tanh

    def deferred(self, _node: Construction) -> Start:
        """The factory of a kernel that every other time leaves its call to `clerk`."""

        def start(call: Call, value: Any) -> None:
            if self.random.random() < 0.5:
                call.done(value)
            else:
                self.pending[call] = value
                call.on_cancel(partial(self.pending.pop, call))

        return start

    async def clerk(self) -> None:
        """Ends pending calls in random order until it is cancelled."""
        while True:
            await trio.lowlevel.checkpoint()
            self.turns += 1
            for _ in range(min(len(self.pending), 2)):
                self.serve_one()

    def serve_one(self) -> None:
        """Ends one of the pending calls; that may start or end others."""
        if self.pending:
            call = self.random.choice(list(self.pending))
            call.done(self.pending.pop(call))
