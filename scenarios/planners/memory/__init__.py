"""The memory of a training step in closed form: what the fullest pipeline rank allocates and reserves, by category.

    memory_columns(step, configurations)    bytes by category, of each configuration
    smallest_change(step, configurations, row, limit_bytes)    the largest parts of one, and what would make it fit

states.py      values, gradients and the optimizer's bytes
kept.py        activations that layers keep for their backward pass
pipeline.py    for how many micro-batches they do
moments.py     temporaries, at the times of a step when most is needed
allocator.py   reserved beyond allocated
bounds.py      how sure it is
columns.py     the sum
changes.py     what would make a configuration fit
"""

from __future__ import annotations

from .changes import MemoryAdvice as MemoryAdvice, smallest_change as smallest_change
from .columns import MemoryColumns as MemoryColumns, memory_columns as memory_columns
