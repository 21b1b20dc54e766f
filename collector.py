"""Pauses the garbage collector while a graph is built, or while modules are imported.

Both make many objects that stay, so every collection meanwhile would walk all of them for nothing. For the same reason
very many new objects are moved to the oldest generation before collection goes on. That also sets the counts by which
the collector decides when to collect to 0, so it must be rare: what does it often would leave garbage for good. Steps
leave the collector alone.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_MANY = 20_000  # objects; to walk more takes over 10 ms, and the youngest generation is collected at 700


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pauses the cyclic garbage collector inside the block and restores it afterwards."""
    was_enabled = gc.isenabled()
    before = gc.get_count()[0]
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            # Others may have frozen objects, which `unfreeze` would thaw.
            if gc.get_count()[0] - before > _MANY and gc.get_freeze_count() == 0:
                gc.freeze()
                gc.unfreeze()  # both together move all objects to the oldest generation without walking them
            gc.enable()
