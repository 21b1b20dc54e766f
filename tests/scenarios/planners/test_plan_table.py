"""The table of plans: columns that tell plans apart, and those that fit a terminal."""

from __future__ import annotations

import pytest

from partita.scenarios import Split
from partita.scenarios.planners.plan_table import notes_of, plan_rows
from tests.scenarios.commands.planning.plans import made

PLANS = [
    made(1, Split(tp=2, dp=4, microbatch=2, precision="bfloat16")),
    made(2, Split(tp=2, pp=2, dp=2, interleave=2, microbatches=4, zero=1, precision="bfloat16"), bubble_fraction=0.125),
    made(3, Split(cp=2, dp=4, zero=2, zero_group=2, recompute="full", precision="bfloat16"), usd_per_step=0.25),
]
WIDE = (
    *("#", "tp", "pp", "dp", "cp", "by", "micro", "v", "recompute", "zero", "step ms", "80 % of steps", "tokens/s"),
    *("MFU", "GiB of 40.0", "exposed", "bubble", "$/step"),
)


def test_a_row_has_what_differs() -> None:
    """Sizes with their unit; what no plan has, such as ep and a simulated time, has no column."""
    headings, rows = plan_rows(PLANS)
    assert tuple(headings) == WIDE
    assert dict(zip(headings, rows[2], strict=True)) == {
        "#": "3",
        "tp": "1",
        "pp": "1",
        "dp": "4",
        "cp": "2",
        "by": "ring",
        "micro": "1",
        "v": "1",
        "recompute": "full",
        "zero": "2/2",
        "step ms": "100.0",
        "80 % of steps": "90-112",
        "tokens/s": "1,000,000",
        "MFU": "40.0 %",
        "GiB of 40.0": "20.0",
        "exposed": "10.0 %",
        "bubble": "0.0 %",
        "$/step": "0.250",
    }
    assert "simulated" in plan_rows([made(simulated_step_ms=99.0)])[0]


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120])
def test_a_narrow_terminal_has_the_columns_that_matter(width: int) -> None:
    """Others are left out, never the split, its time and its memory."""
    headings, rows = plan_rows(PLANS, width)
    widths = [max(map(len, column)) + 2 for column in zip(headings, *rows, strict=True)]
    kept = {"#", "tp", "pp", "dp", "step ms", "MFU", "GiB of 40.0"}
    assert kept <= set(headings)
    assert sum(widths) <= max(width, 80)
    assert headings == [heading for heading in WIDE if heading in headings]


def test_short_headings_are_explained() -> None:
    """Those that the table has, in lines that fit a terminal."""
    lines = notes_of(["#", "tp", "micro", "GiB of 40.0"])
    assert lines == ["micro: sequences of a micro-batch; GiB: reserved on the fullest GPU"]
    assert all(len(line) <= 110 for line in notes_of(WIDE))
