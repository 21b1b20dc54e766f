"""Two runs beside each other, node by node: what became slower or faster, what appeared and what vanished."""

from __future__ import annotations

from .....devices.units import format_ns
from ..page_data import Document
from .blocks import PageBlock, element, lead, name, remark, section, table, tile

_TOTALS = {
    "slower_ns": "became slower",
    "faster_ns": "became faster",
    "appeared_ns": "appeared",
    "vanished_ns": "vanished",
}


def comparison_panel(compared: Document) -> PageBlock:
    """The panel of a page of two runs."""
    (before, after), (a, b) = compared["names"], compared["makespan_ns"]
    change = f"{format_ns(abs(b - a))} {'more' if b > a else 'less'} ({100 * abs(b - a) / a:.1f} %)" if a else ""
    verdict = "takes as long" if a == b else f"takes {change}"
    totals = [tile(text, format_ns(compared["totals"][key])) for key, text in _TOTALS.items()]
    times = [(before, "ns"), (after, "ns"), ("Change", "change")]
    node_columns = [("Node", "name"), ("Op", "name"), ("Became", "name"), *times, ("Where", "name")]
    left_out = compared["left_out"]
    return section(
        "comparison",
        "Comparison",
        lead(
            name(before),
            f" takes {format_ns(a)}, ",
            name(after),
            f" {format_ns(b)}: the second {verdict}. Nodes are matched by name.",
        ),
        element("dl", *totals, tile("the same", f"{compared['totals']['same']:,} nodes"), class_="tiles"),
        element("h3", "By node"),
        table("Nodes of both runs", node_columns, [_row(row) for row in compared["rows"]], search=True, nodes=True),
        remark(f"{left_out:,} nodes that changed less are left out.") if left_out else None,
        element("h3", "By op"),
        table(
            "Ops of both runs",
            [("Op", "name"), *times],
            [[row["op"], *_times(row)] for row in compared["ops"]],
            part=12,
        ),
    )


def _row(row: Document) -> list[object]:
    return [row["node"], row["op"], _became(row["a_ns"], row["b_ns"]), *_times(row), _where(row)]


def _became(a: int | None, b: int | None) -> str:
    if a is None or b is None:
        return "appeared" if a is None else "vanished"
    return "the same" if a == b else "slower" if b > a else "faster"


def _times(row: Document) -> list[int | None]:
    return [row["a_ns"], row["b_ns"], (row["b_ns"] or 0) - (row["a_ns"] or 0)]


def _where(row: Document) -> str:
    devices = dict.fromkeys(device for device in (row["a_device"], row["b_device"]) if device)
    return " → ".join(devices)
