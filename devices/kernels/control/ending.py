"""Kernels that tell the time and that end a step."""

from __future__ import annotations

import time

import numpy as np

from ....errors import AbortedError
from ..registry import Construction, Kernel, kernel, simple


@kernel("Abort")
def abort(node: Construction) -> Kernel:
    """Raises AbortedError with the message of the attrs, or does nothing with `exit_without_error`.

    TensorFlow ends the process; here others may live in it, so only the step ends.
    """
    if node.attrs["exit_without_error"]:
        return lambda: None
    text = f"Abort_op intentional failure; {node.attrs['error_msg'].decode(errors='replace')}"

    def fail() -> None:
        raise AbortedError(text)

    return fail


simple("Timestamp", lambda: np.float64(time.time()))
