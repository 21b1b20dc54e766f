"""Panels whose curves and long tables the script makes: critical path, memory, links. They have captions and sums."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter

from .....devices.units import format_bytes, format_ns
from ..page_data import Document
from .blocks import PageBlock, element, lead, of_run, remark, section, table

_CATEGORIES = ("parameters", "gradients", "optimizer", "activations", "temporaries", "communication")
"""a category looks the same in every memory"""


def path_panel(runs: Sequence[Document]) -> list[PageBlock]:
    """By op, and event by event."""
    said = (
        "Each of these events waited for the one before it. Only what makes one of them faster makes the step faster."
    )
    paths = [block for number, run in enumerate(runs) if run["critical_path"] for block in _path(number, run, runs)]
    return [section("path", "Critical path", lead(said), *paths)] if paths else []


def _path(number: int, run: Document, runs: Sequence[Document]) -> list[PageBlock]:
    path, of = run["path"], of_run(run, runs)
    op_columns = [("Op", "name"), ("Events", "count"), ("Time", "ns"), ("Share of the step", "share")]
    ops = [[op["op"], op["events"], op["ns"], op["ns"] / run["makespan_ns"]] for op in path["ops"]]
    columns = [
        ("Node", "name"), ("Op", "name"), ("Device", "name"), ("Starts", "ns"), ("Takes", "ns"), ("Waited for", "name")
    ]  # fmt: skip
    events = [
        itemgetter("node", "op", "device", "start_ns", "ns", "waited_for", "number")(event) for event in path["events"]
    ]
    rest = [remark(f"{path['left_out']:,} events that take less are left out.")] if path["left_out"] else []
    return [
        element("h3", "By op", of_run(run, runs, "in")),
        table(f"Critical path by op{of}", op_columns, ops, sort=2, part=6),
        element("h3", "Event by event", of_run(run, runs, "in")),
        table(f"Events of the critical path{of}", columns, events, search=True, events_of=number, part=12),
        *rest,
    ]


def memory_panel(runs: Sequence[Document]) -> list[PageBlock]:
    """The fullest first."""
    memories = [(number, memory) for number, run in enumerate(runs) for memory in run["memory"]]
    memories.sort(
        key=lambda each: (-each[1]["peak_bytes"] / (each[1]["limit_bytes"] or float("inf")), -each[1]["peak_bytes"])
    )
    curves = [_memory(number, memory, of_run(runs[number], runs, "in")) for number, memory in memories]
    return [section("memory", "Memory over time", ["curves", {"choice": "Memory of", "of": curves}])] if curves else []


def _memory(number: int, memory: Document, in_run: str) -> Document:
    title = f"{memory['short']}{', host memory' if memory['place'] == 'host' else ''}{in_run}"
    limit, peak = memory["limit_bytes"], memory["peak_bytes"]
    of_limit = "" if limit is None else f", {100 * peak / limit:.1f} % of its {format_bytes(limit)}"
    said = f"At most {format_bytes(peak)} are in use at once, at {format_ns(memory['at_ns'])}{of_limit}."
    is_short = limit is not None and peak > limit
    return {
        "title": title,
        "run": number,
        "label": f"Memory of {title} by category over time. {said} The table below has the categories.",
        "at": memory["at"],
        "categories": [
            {**category, "look": _look(place, category["name"])} for place, category in enumerate(memory["categories"])
        ],
        "limit": limit,
        "peak": peak,
        "peak_ns": memory["at_ns"],
        "format": "bytes",
        "before": element(
            "p", f"Does not fit: {said}" if is_short else said, class_="lead error" if is_short else "lead"
        ),
        "after": element(
            "div",
            element("div", element("h3", "By category"), _by_category(title, memory)),
            element("div", element("h3", "Largest tensors at the peak"), *_tensors(title, memory)),
            class_="beside",
        ),
    }


def _look(place: int, category: str) -> int:
    return _CATEGORIES.index(category) if category in _CATEGORIES else place


def _by_category(title: str, memory: Document) -> PageBlock:
    columns = [("Category", "category"), ("At the peak", "bytes"), ("At most", "bytes")]
    rows: list[list[object]] = [
        [{"value": each["name"], "look": _look(place, each["name"])}, each["at_peak_bytes"], each["most_bytes"]]
        for place, each in enumerate(memory["categories"])
    ]
    whole = [{"value": "in all"}, memory["peak_bytes"], memory["peak_bytes"]]
    return table(f"Memory of {title} by category", columns, [*reversed(rows), whole])


def _tensors(title: str, memory: Document) -> list[PageBlock]:
    shown, every = memory["tensors"], memory["tensor_count"]
    columns = [("Node", "name"), ("Output", "count"), ("Size", "bytes"), ("Category", "name"), ("Iteration", "name")]
    rows = [itemgetter("node", "output", "bytes", "category", "iteration")(tensor) for tensor in shown]
    found = table(f"Largest tensors of {title}", columns, rows, sort=2, nodes=True, part=10)
    more = [remark(f"The {len(shown):,} largest of {every:,} in use then.")] if every > len(shown) else []
    return [found, *more]


def links_panel(runs: Sequence[Document]) -> list[PageBlock]:
    """The busiest first."""
    links = [(number, link, _use(link, runs[number])) for number, run in enumerate(runs) for link in run["links"]]
    links.sort(key=itemgetter(2), reverse=True)
    if not links:
        return []
    titles = [
        f"{link['source']} → {link['destination']}{of_run(runs[number], runs, 'in')}" for number, link, _ in links
    ]
    columns = [
        ("Link", "name"), ("Model", "name"), ("Bandwidth", "rate"), ("Carried", "bytes"), ("In use", "share"),
        ("Of its bandwidth", "share"),
    ]  # fmt: skip
    rows = [
        [title, link["model"], link["bandwidth"], link["bytes"], link["share"], use]
        for title, (_, link, use) in zip(titles, links, strict=True)
    ]
    curves = [_link(title, number, link) for title, (number, link, _) in zip(titles, links, strict=True)]
    said = (
        "What the links between devices carried. In use: the share of the step in which a link carried anything. "
        "Of its bandwidth: what it carried, of what it could have."
    )
    chosen = ["curves", {"choice": "Use over time of", "of": curves}]
    return [section("links", "Links", lead(said), chosen, table("Use of links", columns, rows, search=True))]


def _use(link: Document, run: Document) -> float:
    return float(link["bytes"] / link["bandwidth"] / (run["makespan_ns"] / 1e9))


def _link(title: str, number: int, link: Document) -> Document:
    said = f"At most {100 * link['peak_rate'] / link['bandwidth']:.1f} % of its bandwidth."
    return {
        "title": title,
        "run": number,
        "label": f"Use of {title} over time. {said}",
        "at": link["at"],
        "categories": [{"name": "in use", "array": link["rate"], "look": 2}],
        "limit": link["bandwidth"],
        "peak": link["peak_rate"],
        "peak_ns": None,
        "format": "rate",
        "before": None,
        "after": None,
    }
