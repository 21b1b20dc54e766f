"""Kernels that a test decides over: one that fails when told to, one whose outputs come when the test says so.

Flows in: a pytest monkeypatch. Flows out: `Disturbance`, in place of the kernels of Tanh and Abs. Always holds: what a
call was told, at once or later, it was told once; calls whose step has ended are forgotten.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any

import numpy as np
import pytest
import trio

from partita.devices.kernels import registry
from partita.devices.kernels.registry import Call, Construction, Kernel, Start
from partita.errors import InvalidArgumentError

FAILING, DEFERRED = "Tanh", "Abs"


@dataclass
class Disturbance:
    """Tanh fails in call number `fails_at`, if any; Abs gives its input back: at once, or when `clerk` comes to it.

    `calls` counts those of Tanh, `turns` those that the clerk got from the scheduler.
    """

    random: Random
    calls: int = 0
    fails_at: int = -1
    turns: int = 0
    pending: dict[Call, Any] = field(default_factory=dict)

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """Takes the place of two kernels until `patch` is undone."""
        registry.is_deferred(DEFERRED)  # has all kernels registered
        patch.setitem(registry._FACTORIES, FAILING, self.failing)
        patch.setitem(registry._FACTORIES, DEFERRED, self.deferred)
        patch.setattr(registry, "_DEFERRED", registry._DEFERRED | {DEFERRED})

    def failing(self, _node: Construction) -> Kernel:
        """The factory of a kernel that counts its calls."""

        def tanh(value: Any) -> Any:
            self.calls += 1
            if self.calls == self.fails_at:
                raise InvalidArgumentError("told to fail")
            return np.tanh(value)

        return tanh

    def deferred(self, _node: Construction) -> Start:
        """The factory of a kernel that waits for the clerk every other time."""

        def start(call: Call, value: Any) -> None:
            if self.random.random() < 0.5:
                call.done(value)
            else:
                self.pending[call] = value
                call.on_cancel(partial(self.pending.pop, call))

        return start

    async def clerk(self) -> None:
        """Serves pending calls, in any order, until it is cancelled."""
        while True:
            await trio.lowlevel.checkpoint()
            self.turns += 1
            for _ in range(min(len(self.pending), 2)):
                self.serve_one()

    def serve_one(self) -> None:
        """Ends one of the pending calls, which may end others or begin some."""
        if self.pending:
            call = self.random.choice(list(self.pending))
            call.done(self.pending.pop(call))
