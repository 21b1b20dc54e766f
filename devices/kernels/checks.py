"""The check that most kernels make of their inputs."""

from __future__ import annotations

from ...errors import InvalidArgumentError


def require(condition: bool, message: str) -> None:
    """InvalidArgumentError with `message` unless `condition`; for checks whose message is cheap to make."""
    if not condition:
        raise InvalidArgumentError(message)
