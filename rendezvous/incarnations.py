"""The policy for receives from devices that have restarted.

A device that restarts gets a new incarnation. A key names the incarnation that the sending device had when the graph
was cut, so it may be an old one. As in TensorFlow, a worker checks that when it receives from a device of another task
(`worker.WorkerRendezvous`). The policy returns the error that the receive ends with, or None to go on.

    >>> refuse_stale("/job:worker/task:1/device:CPU:0", 1, 2)
    AbortedError('RecvTensor expects a different device incarnation: 1 vs. 2. Your worker job was probably ...')
"""

from __future__ import annotations

from collections.abc import Callable

from ..errors import AbortedError, PartitaError

Policy = Callable[[str, int, int], PartitaError | None]
"""device, the incarnation in the key, the current incarnation -> the error of the receive, or None"""


def refuse_stale(device: str, expected: int, actual: int) -> PartitaError | None:
    """TensorFlow's policy: an error unless the incarnation in the key is the current one."""
    return None if expected == actual else stale(device, expected, actual)


def stale(device: str, expected: int, actual: int) -> AbortedError:
    """The error of a step that needs an old incarnation of a device; ABORTED means that the step may be run again."""
    return AbortedError(
        f"RecvTensor expects a different device incarnation: {expected} vs. {actual}. Your worker job was probably "
        f"restarted. What {device} held is gone: initialise it and run the step again"
    )
