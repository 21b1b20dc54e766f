"""A pause for the garbage collector where many objects are made and none are dropped.

Building a graph makes no reference cycles; each collection while it grows would walk everything built so far, and the
first one afterwards everything built meanwhile. So what was built counts as old at once.
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
            if gc.get_freeze_count() == 0:  # somebody's frozen objects must stay frozen
                gc.freeze()
                gc.unfreeze()  # the two together move all objects to the oldest generation without a look at them
            gc.enable()
