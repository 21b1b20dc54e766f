"""Which restarts of devices a session has seen: they fail the steps that began before and use the device.

restarts so far    [GPU:0]
a step begins      it remembers that it has seen 1
GPU:1 restarts     [GPU:0, GPU:1]; `check(1, devices)` raises if the step uses GPU:1, whatever it knew of GPU:0
"""

from __future__ import annotations

from ...errors import AbortedError


class Restarts:
    """The restarts of one session, in order."""

    def __init__(self) -> None:
        self._seen: list[tuple[str, str]] = []

    def __len__(self) -> int:
        return len(self._seen)

    def add(self, device: str, message: str) -> None:
        """A device, given by its full name, has restarted; `message` names it."""
        self._seen.append((device, message))

    def check(self, since: int, devices: frozenset[str]) -> None:
        """AbortedError if one of these devices has restarted after the first `since` restarts."""
        for device, message in self._seen[since:]:
            if device in devices:
                raise AbortedError(message)
