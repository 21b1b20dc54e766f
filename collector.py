"""Pauses the garbage collector while a graph is built, or while modules are imported.

Both make many objects that stay, so every collection meanwhile would walk all of them for nothing.
For the same reason the new objects are moved to the oldest generation before collection goes on.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pauses the cyclic garbage collector inside the block and restores it afterwards."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            if gc.get_freeze_count() == 0:  # else unfreeze would thaw objects that others froze
                gc.freeze()
                gc.unfreeze()  # both together move all objects to the oldest generation without walking them
            gc.enable()
