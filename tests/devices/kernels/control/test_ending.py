"""A step can be ended from inside, and can ask for the time."""

from __future__ import annotations

import time

import pytest

from partita.errors import AbortedError
from tests.devices.kernels.harness import run


def test_abort_fails_the_step_only() -> None:
    """With TensorFlow's text; it ends the process there."""
    with pytest.raises(AbortedError, match="Abort_op intentional failure; boom"):
        run("Abort", error_msg="boom")
    assert run("Abort", error_msg="boom", exit_without_error=True) is None


def test_the_time_is_in_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Since 1970, as in module `time`, with its fractions."""
    monkeypatch.setattr(time, "time", lambda: 1_790_000_000.25)
    assert run("Timestamp") == 1_790_000_000.25
