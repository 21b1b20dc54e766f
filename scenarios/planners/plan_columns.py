"""Columns of tables of plans: what each says of a plan, as a value to sort by and as a text.

column = PlanColumn("MFU", lambda plan: 100 * plan.mfu, "{:.1f} %")
column.value(plan)        41.03
column.cell(plan)         "41.0 %"
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

Plan = TypeVar("Plan")
PlanValue = str | int | float | None


class PlanColumn(NamedTuple, Generic[Plan]):
    """A heading, the value of a plan, how that is written, and what it is in all rows where the column is left out.

    `unit` is that of the value, where the text has one and the heading has none. A value of None is an empty cell.
    """

    heading: str
    value: Callable[[Plan], PlanValue]
    form: str = "{}"
    usual: str | None = None
    unit: str = ""

    def cell(self, plan: Plan) -> str:
        """The value as text."""
        value = self.value(plan)
        return "" if value is None else self.form.format(value)


def telling(columns: Sequence[PlanColumn[Plan]], plans: Sequence[Plan]) -> list[PlanColumn[Plan]]:
    """The columns that are not what they usually are in all rows."""
    return [column for column in columns if any(column.cell(plan) != column.usual for plan in plans)]
