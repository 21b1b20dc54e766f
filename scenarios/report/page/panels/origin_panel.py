"""Where the figures come from: sources of times, the interval, what was assumed; and what communication is hidden."""

from __future__ import annotations

from collections.abc import Sequence

from .....devices.units import format_ns
from ..page_data import Document
from .blocks import PageBlock, element, lead, name, of_run, remark, section, table


def origin_panel(runs: Sequence[Document]) -> list[PageBlock]:
    """Nothing for a page without runs."""
    blocks = [
        block
        for run in runs
        for block in (
            element("h3", name(run["name"])) if len(runs) > 1 else None,
            lead(_certainty(run)),
            *_sources(run, of_run(run, runs)),
            *_communication(run, of_run(run, runs)),
            *_assumptions(run, of_run(run, runs)),
        )
    ]
    return [section("origin", "Where the figures come from", *blocks)] if blocks else []


def _certainty(run: Document) -> PageBlock:
    bound, interval = run["dependency_bound_ns"], run["interval"]
    fastest = (
        f" No order of events is faster than {format_ns(bound)}, the longest chain of dependencies." if bound else ""
    )
    within = (
        f"In four of five steps it takes {format_ns(interval[0])} to {format_ns(interval[1])}."
        if interval
        else f"How sure that is cannot be said: {run['interval_why']}."
    )
    return name(f"The step takes {format_ns(run['makespan_ns'])}, {run['basis']}. {within}{fastest}")


def _sources(run: Document, of: str) -> list[PageBlock]:
    columns = [
        ("Source", "name"), ("Runs", "count"), ("Time", "ns"), ("Share", "share"), ("In four of five steps", "text"),
        ("What that means", "text"),
    ]  # fmt: skip
    every = sum(row["time_ns"] for row in run["sources"])
    rows = [
        [
            row["source"],
            row["runs"],
            row["time_ns"],
            row["time_ns"] / every if every else 0,
            _within(row),
            row["meaning"],
        ]
        for row in run["sources"]
    ]
    return (
        [element("h3", "Sources of the times"), table(f"Sources of the times{of}", columns, rows, sort=2)]
        if rows
        else []
    )


def _within(row: Document) -> str:
    return "not known" if row["low_ns"] is None else f"{format_ns(row['low_ns'])} to {format_ns(row['high_ns'])}"


def _communication(run: Document, of: str) -> list[PageBlock]:
    rows = [
        [device["short"], device["exposed_ns"], device["exposed_ns"] / run["makespan_ns"], device["hidden_ns"]]
        for device in run["devices"]
        if device["exposed_ns"] or device["hidden_ns"]
    ]
    said = (
        "Time in collectives. Exposed: the device computes nothing meanwhile. Hidden: it computes too, so that they "
        "cost no time."
    )
    columns = [("Device", "name"), ("Exposed", "ns"), ("Of the step", "share"), ("Hidden", "ns")]
    shown = table(f"Communication by device{of}", columns, rows, sort=1)
    return [element("h3", "Communication"), remark(said), shown] if rows else []


def _assumptions(run: Document, of: str) -> list[PageBlock]:
    columns = [("Of", "name"), ("What", "name"), ("Value", "name")]
    rows = [[each["node"], each["what"], each["value"]] for each in run["assumed"]]
    shown = table(f"Assumptions{of}", columns, rows, search=True) if rows else remark("Nothing.")
    return [element("h3", "What was assumed"), shown]
