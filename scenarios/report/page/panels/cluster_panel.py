"""The cluster as a picture: boxes in boxes. A network around hosts, equal ones once; in each its devices and links."""

from __future__ import annotations

from collections.abc import Sequence

from .....devices.units import format_bytes
from ..page_data import Document
from .blocks import Child, PageBlock, element, figure, section


def cluster_panel(runs: Sequence[Document]) -> list[PageBlock]:
    """The clusters of all runs that have one, equal ones once."""
    different: list[Document] = []
    for run in runs:
        if run["cluster"] is not None and all(run["cluster"] != other["cluster"] for other in different):
            different.append(run)
    titled = [
        block
        for run in different
        for block in (element("h3", run["name"]) if len(different) > 1 else None, _picture(run["cluster"]))
    ]
    return [section("cluster", "Cluster", *titled)] if titled else []


def _picture(cluster: Document) -> PageBlock:
    more, network = cluster["more"], cluster["network"]
    rest = [element("li", f"{more:,} more hosts, each unlike these", class_="host")] if more else []
    boxes = element("ul", *map(_host, cluster["hosts"]), *rest, class_="hosts")
    if network is None:
        return boxes
    return element("div", element("p", element("strong", "Network: "), *_network(network)), boxes, class_="network")


def _network(network: Document) -> list[Child]:
    shown, every = network["switches"], network["switch_count"]
    ports = f"{network['ports']} ports of " if network["ports"] > 1 else ""
    over = f" over {', '.join(shown)}" if shown else ""
    others = f", {every:,} switches in all" if every > len(shown) else ""
    return [f"each host has {ports}{network['model']}, ", figure("rate", network["bandwidth"]), over, others]


def _host(host: Document) -> PageBlock:
    alike, first = host["count"], host["names"][0]
    wires = [
        element("li", f"{link['between']}: {link['model']}, ", figure("rate", link["bandwidth"]))
        for link in host["links"]
    ]
    return element(
        "li",
        element("strong", f"{alike:,} hosts, each like {first}" if alike > 1 else first),
        element("ul", *map(_devices, host["devices"]), class_="rows"),
        element("ul", *wires, class_="wires") if wires else None,
        class_="host many" if alike > 1 else "host",
    )


def _devices(devices: Document) -> PageBlock:
    """A chip for each device, as far as they have names here, and what they are."""
    alike, names, memory = devices["count"], devices["names"], devices["memory_bytes"]
    chips = [*names, *([f"+ {alike - len(names):,}"] if alike > len(names) else [])]
    size = f", {format_bytes(memory)}{' each' if alike > 1 else ''}" if memory else ""
    about = f"{f'{alike:,} of ' if alike > 1 else ''}{devices['model']}{size}"
    drawn = [element("span", chip, class_="chip") for chip in chips]
    return element("li", *drawn, element("small", about, class_="muted"), class_=devices["kind"].lower())
