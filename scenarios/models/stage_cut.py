"""The layers of the stages of a pipeline where nobody says them: as equal as they can be, more in the middle.

    even_stages(10, 4)      (2, 3, 3, 2)

The first stage has the embedding and the last one the head, so stages with a layer more are between them.
"""

from __future__ import annotations


def even_stages(layers: int, stages: int) -> tuple[int, ...]:
    """The layers of all stages, first to last."""
    least, more = divmod(layers, stages)
    first = (stages - more) // 2
    return tuple(least + (first <= stage < first + more) for stage in range(stages))
