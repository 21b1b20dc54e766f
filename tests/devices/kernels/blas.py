"""Waits until this process has given the threads of BLAS back to its host."""

from __future__ import annotations

import threading

from partita.devices.kernels.blas_threads import LIMIT


def released() -> None:
    """Returns when the limit is gone: its thread ends with it."""
    for thread in threading.enumerate():
        if thread.name == "partita BLAS threads":
            thread.join()
    assert not LIMIT.is_held
