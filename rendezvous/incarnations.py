"""What becomes of a tensor that a past life of a device was to send: the one place that decides it.

A device that restarts gets another incarnation. Keys name the incarnation that whoever cut the graph knew, so a key may
ask for a tensor of a life that is over. As in TensorFlow this is looked at where a worker receives from a device of
another task (`worker.WorkerRendezvous`), which asks a policy: the error that the receive ends with, or None to go on.

    >>> refuse_stale("/job:worker/task:1/device:CPU:0", 1, 2)
    AbortedError('RecvTensor expects a different device incarnation: 1 vs. 2. Your worker job was probably ...')
"""

from __future__ import annotations

from collections.abc import Callable

from ..errors import AbortedError, PartitaError

Policy = Callable[[str, int, int], PartitaError | None]
"""device, the incarnation that a key names, the one that the device has -> why not to receive from it"""


def refuse_stale(device: str, expected: int, actual: int) -> PartitaError | None:
    """TensorFlow's policy: only the life that is meant may send."""
    return None if expected == actual else stale(device, expected, actual)


def stale(device: str, expected: int, actual: int) -> AbortedError:
    """The error of a step that counts on a life of a device that is over; ABORTED means that it may be run again."""
    return AbortedError(
        f"RecvTensor expects a different device incarnation: {expected} vs. {actual}. Your worker job was probably "
        f"restarted. What {device} held is gone: initialise it and run the step again"
    )
