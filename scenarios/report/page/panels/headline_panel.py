"""The figures that answer first: how long, what limits it, whether it fits, and what this page cannot tell."""

from __future__ import annotations

from .....devices.units import format_bytes, format_ns
from ..page_data import Document
from .blocks import PageBlock, element, figure, name, of_run, remark, section, tile

_MOST_LIMITS = 6
_UNFOLDED = 3  # notes that are shown without being asked for
_WAITING = "devices wait for their parts of a collective: smaller tensors or faster links help"
_MEANINGS = {
    "launching kernels": "the host starts kernels more slowly than the device computes them: fewer, larger ops help",
    "memory bandwidth": "the device reads and writes its memory as fast as it can: moving fewer bytes helps",
    "arithmetic": "the device computes as fast as it can: fewer operations or a faster device help",
    "transfers": "tensors move between devices: fewer or smaller ones, or a faster link, help",
    "latency": "tensors are on their way between devices: fewer transfers help",
    "all_": _WAITING,
    "reduce_scatter": _WAITING,
}
"""what a limit means, by how it begins"""


def headline_panel(document: Document) -> list[PageBlock]:
    """Nothing for a page without figures."""
    if not document["headline"]:
        return []
    runs = document["runs"]
    warnings = list(dict.fromkeys(warning for run in runs for warning in run["warnings"]))
    return [
        section(
            "headline",
            "In short",
            *(shortage for run in runs for shortage in _shortages(run)),
            element("dl", *(tile(**each) for each in document["headline"]), class_="tiles"),
            element("div", *(_limits(run, runs) for run in runs if run["limits"]), class_="beside"),
            *_notes(warnings),
            *_missing(document),
        )
    ]


def _shortages(run: Document) -> list[PageBlock]:
    """A sentence for each memory that is too small."""
    return [
        element(
            "p",
            element("strong", "Does not fit: "),
            name(memory["short"]),
            f" needs {format_bytes(memory['peak_bytes'])} of {memory['place']} memory and has "
            f"{format_bytes(memory['limit_bytes'])}, "
            f"{format_bytes(memory['peak_bytes'] - memory['limit_bytes'])} too little.",
            class_="alert",
            role="note",
        )
        for memory in run["memory"]
        if memory["limit_bytes"] is not None and memory["peak_bytes"] > memory["limit_bytes"]
    ]


def _limits(run: Document, runs: list[Document]) -> PageBlock:
    shown, rest = run["limits"][:_MOST_LIMITS], sum(limit["ns"] for limit in run["limits"][_MOST_LIMITS:])
    rows = [*shown, *([{"what": "everything else", "ns": rest}] if rest else [])]
    return element(
        "div",
        element("h3", "What limits the step", of_run(run, runs)),
        remark("The longest chain of events that waited for each other, split by what each spent its time on."),
        element("ol", *(_limit(row["what"], row["ns"], run["makespan_ns"]) for row in rows), class_="limits"),
    )


def _limit(what: str, ns: int, makespan_ns: int) -> PageBlock:
    meaning = next((meaning for beginning, meaning in _MEANINGS.items() if what.startswith(beginning)), None)
    return element(
        "li",
        element("span", name(what), element("small", meaning, class_="muted"), class_="what"),
        figure("share", ns / makespan_ns),
        element("span", format_ns(ns), class_="figure"),
    )


def _notes(warnings: list[str]) -> list[PageBlock]:
    if not warnings:
        return []
    summary = element("summary", f"{len(warnings)} notes" if len(warnings) > 1 else "1 note")
    items = element("ul", *(element("li", name(text)) for text in warnings))
    return [element("details", summary, items, open=len(warnings) <= _UNFOLDED)]


def _missing(document: Document) -> list[PageBlock]:
    runs = document["runs"]
    items = [
        element("li", element("strong", each["panel"]), of_run(runs[each["run"]], runs), ": ", name(each["why"]))
        for each in document["missing"]
    ]
    return [element("h3", "Not on this page"), element("ul", *items)] if items else []
