"""Calls of deferred kernels without an executor.

It is asserted that a kernel ends a call once, and not after the call's step was cancelled.

    step = FakeStep()                 call = step.call()
    start(call, *inputs)              call.outcome: None | ("done", outputs) | ("failed", error)
    step.cancel()
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import numpy as np
import pytest

from partita.devices.kernels.registry import is_deferred, lookup as find_kernel
from partita.devices.kernels.step_state import KernelStep, StepState
from partita.devices.state import DeviceState
from partita.errors import PartitaError
from tests.devices.kernels.harness import construct, flatten

T = TypeVar("T")


class FakeStep:
    """A step with any number of calls."""

    def __init__(self) -> None:
        self.calls: list[FakeCall] = []
        self.is_over = False
        self._state = StepState()

    def call(self) -> FakeCall:
        """A new call of this step."""
        self.calls.append(FakeCall(self))
        return self.calls[-1]

    def state(self, key: Hashable, make: Callable[[], T]) -> T:
        """What kernels keep for the step."""
        return self._state.get(key, make)

    def cancel(self) -> None:
        """Ends the step before its calls."""
        self.is_over = True
        for call in self.calls:
            if call.outcome is None:
                for callback in call.callbacks:
                    callback()
        self._state.end()


class FakeCall:
    """A call of a fake step; `outcome` is None until a kernel ends the call."""

    def __init__(self, step: FakeStep) -> None:
        self.step: KernelStep = step
        self._step = step
        self.callbacks: list[Callable[[], None]] = []
        self.outcome: tuple[str, Any] | None = None

    def done(self, *outputs: Any) -> None:
        """Ends the call with outputs."""
        self._end("done", outputs)

    def fail(self, error: PartitaError) -> None:
        """Ends the call with an error."""
        self._end("failed", error)

    def on_cancel(self, callback: Callable[[], None]) -> None:
        """Calls `callback` when the step is cancelled."""
        self.callbacks.append(callback)

    def _end(self, how: str, what: Any) -> None:
        assert self.outcome is None, "a call ends once"
        assert not self._step.is_over, "a call must not end after its step"
        self.outcome = how, what

    @property
    def outputs(self) -> tuple[Any, ...]:
        """The outputs of the call; raises the error that it failed with."""
        assert self.outcome is not None, "the call is still waiting"
        how, what = self.outcome
        if how == "failed":
            raise what
        return tuple(what)


def start(op: str, *inputs: Any, state: DeviceState, step: FakeStep | None = None, **attrs: Any) -> FakeCall:
    """Starts one node, in a step of its own unless `step` is given."""
    assert is_deferred(op), f"{op} is not a deferred op"
    factory = find_kernel(op)
    assert factory is not None
    call = (step or FakeStep()).call()
    try:
        with np.errstate(all="ignore"):
            factory(construct(op, *inputs, state=state, **attrs))(call, *flatten(inputs))
    except PartitaError as error:
        call.fail(error)
    return call


def assert_refused(call: FakeCall, error: type[PartitaError], message: str) -> None:
    """Asserts that a call has failed with these words."""
    with pytest.raises(error) as caught:
        call.outputs  # noqa: B018 - the property raises
    assert caught.value.message == message
