"""Chunks that were cut short by accident join again, so that a busy moment does not cost a look at the clock for good.

    [32] [32]   each within a quarter of the limit for chunks, many times in a row   ->   [64]

Watched are the halves of a chunk that was halved, the chunks into which the first run cut a segment, and kernels that
have left their thread. A chunk that has nobody to join any more is no longer watched.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from ...plans.planning import CHUNK

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ...plans.plan import Chunk, Segment

_OFTEN = 16  # runs in a row; its neighbour may have been watched for half as long
_SHARE = 4  # of the limit for chunks: two that join leave a half


def watch(segment: Segment, chunks: Iterable[Chunk]) -> None:
    """From now on counts how often in a row these chunks are fast."""
    segment.joinable.update((id(chunk), 0) for chunk in chunks if len(chunk) < CHUNK)


def note_run(segment: Segment, chunk: Chunk, took_s: float, limit_s: float) -> None:
    """Counts one run of a watched chunk, and joins it with a neighbour if both have been fast often enough."""
    is_fast = took_s <= limit_s / _SHARE and id(chunk) not in segment.slow
    count = segment.joinable[id(chunk)] + 1 if is_fast else 0
    segment.joinable[id(chunk)] = count
    if count >= _OFTEN:
        segment.joinable[id(chunk)] = 0
        _join(segment, chunk)


def _join(segment: Segment, chunk: Chunk) -> None:
    """Replaces a chunk and a neighbour by one, for steps that start later."""
    has_neighbour = False
    for first, second in pairwise(segment.chunks):
        if (first is not chunk and second is not chunk) or len(first) + len(second) > CHUNK:
            continue
        other = second if first is chunk else first
        has_neighbour |= id(other) in segment.joinable
        if segment.joinable.get(id(other), 0) >= _OFTEN // 2:
            _replace(segment, first, second)
            return
    if not has_neighbour:
        del segment.joinable[id(chunk)]


def _replace(segment: Segment, first: Chunk, second: Chunk) -> None:
    joined = first + second
    rest = (chunk for chunk in segment.chunks if chunk is not second)
    segment.chunks = tuple(joined if chunk is first else chunk for chunk in rest)
    both = {id(first), id(second)}
    if both <= segment.reusing:
        segment.reusing = (segment.reusing - both) | {id(joined)}
    left = [segment.on_trial.pop(one) for one in both if one in segment.on_trial]
    if left:
        segment.on_trial[id(joined)] = max(left)
    del segment.joinable[id(first)], segment.joinable[id(second)]
    watch(segment, [joined])
