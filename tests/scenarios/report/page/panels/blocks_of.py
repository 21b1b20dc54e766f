"""Looks into the blocks of a page: its panels by their ids, and what is in them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from partita.devices.timing import Timeline
from partita.scenarios.report.page.panels import panels
from partita.scenarios.report.page.panels.blocks import PageBlock
from partita.scenarios.report.page.step_page import step_page


def step_panels(timeline: Timeline, compare: Timeline | None = None) -> dict[str, PageBlock]:
    """The panels of the page of a step by id, in their order."""
    return {block[1]["id"]: block for block in panels(step_page(timeline, title="step", compare=compare).document)}


def within(block: PageBlock) -> Iterator[PageBlock]:
    """A block and all blocks in it; those of curves too."""
    yield block
    of_curves = block[1].get("of", []) if block[0] == "curves" else []
    beside = [each[place] for each in of_curves for place in ("before", "after")]
    for child in [*block[2:], *beside]:
        if isinstance(child, list):
            yield from within(child)


def text_of(block: PageBlock) -> str:
    """All texts of a block one after the other."""
    return "".join(text_of(child) if isinstance(child, list) else child or "" for child in block[2:])


def tables(block: PageBlock) -> dict[str, dict[str, Any]]:  # Any: JSON
    """The tables in a block by their labels."""
    return {each[1]["label"]: each[1] for each in within(block) if each[0] == "table"}
