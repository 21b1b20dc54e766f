"""A search space -> the configurations that are possible, in columns, and how many are not, by reason.

    enumerated(space)       Enumeration(configurations of 31,936 rows, impossible {"zero=3 needs pp=1": 10,080, ...})

Layouts that break a rule are out before what is free in a layout multiplies them; they count as often as it would have.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from ..configurations import Configurations
from .grid import AxisTable, Variants, kept, layouts
from .rules import Unbroken, layout_rules, variant_rules
from .space import SearchSpace


@frozen(eq=False)
class Enumeration:
    """What a space has."""

    configurations: Configurations
    impossible: Mapping[str, int]

    @property
    def count(self) -> int:
        """All configurations, those that are impossible too."""
        return len(self.configurations) + sum(self.impossible.values())


def enumerated(space: SearchSpace) -> Enumeration:
    """The possible configurations of a space."""
    table = layouts(space)
    variants = Variants(space, table)
    whole = Unbroken(len(table["tp"]), variants.counts)
    whole.add(layout_rules(space, table))
    table = variants.of(table, whole.flags)
    unbroken = Unbroken(len(table["tp"]))
    unbroken.add(variant_rules(space, table))
    return Enumeration(configurations_of(space, kept(table, unbroken.flags)), whole.counts + unbroken.counts)


def configurations_of(space: SearchSpace, table: AxisTable) -> Configurations:
    """Rows that have all axes, with the micro-batches of the space's global batch."""
    columns: dict[str, Any] = {  # Any: numbers and flags
        **table,
        "microbatches": space.global_batch // (table["dp"] * table["microbatch"]),
        "sequence_parallel": table["sequence_parallel"] > 0,
    }
    return Configurations(**columns, layers=space.model.layers, **space.asked.same)
