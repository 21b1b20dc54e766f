"""A pause for the garbage collector where many objects are made and none are dropped.

Building a graph makes no reference cycles; each collection while it grows would walk everything built so far.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """Within the block the cyclic garbage collector does not run; afterwards it is as it was."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
