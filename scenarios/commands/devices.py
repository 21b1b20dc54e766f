"""`partita devices`: the catalog of models of devices and links, with the source of every number."""

from __future__ import annotations

from attrs import asdict

from ...devices.catalog import Sourced, aliases_of, device_names, device_spec, link_names, link_spec, provenance
from ...devices.link import LinkSpec
from ...devices.spec import FAMILIES, DeviceSpec
from ...devices.units import format_bytes, format_ns, format_rate
from ...graph.suggestions import suggestion
from ..report import NOT_CALIBRATED
from .failure import ConfigurationError
from .screen import Screen


def devices(name: str | None, as_json: bool) -> None:
    """Prints the whole catalog, or one model of it by its name or alias; ConfigurationError for an unknown name."""
    screen = Screen()
    known = [*device_names(), *link_names()]
    name = next((model for model in device_names() if name in aliases_of(model)), name)
    if name is not None and name not in known:
        raise ConfigurationError(f"the catalog has no model {name!r}{suggestion(name, known)}")
    specs = [device_spec(n) for n in device_names() if name in (None, n)]
    links = [link_spec(n) for n in link_names() if name in (None, n)]
    if as_json:
        screen.json({"devices": [_device(s) for s in specs], "links": [_link(s) for s in links]})
        return
    _print_devices(specs, screen)
    _print_links(links, screen)
    for model in [*(spec.name for spec in specs), *(link.name for link in links)]:
        screen.line(f"sources of {model}")
        for source, keys in _by_source(provenance(model)).items():
            screen.line(f"  {', '.join(keys)}: {source}")
    screen.line()
    screen.line(f"note: {NOT_CALIBRATED}")


def _device(spec: DeviceSpec) -> dict[str, object]:
    return {**asdict(spec), "aliases": list(aliases_of(spec.name)), "sources": _sources(spec.name)}


def _link(spec: LinkSpec) -> dict[str, object]:
    return {**asdict(spec), "sources": _sources(spec.name)}


def _sources(name: str) -> dict[str, object]:
    return {key: asdict(sourced) for key, sourced in provenance(name).items()}


def _print_devices(specs: list[DeviceSpec], screen: Screen) -> None:
    if not specs:
        return
    rates = [family for family in FAMILIES if any(family in spec.peak_flops_per_s for spec in specs)]
    rows = [
        [
            spec.name,
            spec.kind,
            *(format_rate(spec.peak_flops_per_s.get(family)) for family in rates),
            format_bytes(spec.memory_bytes),
            f"{spec.memory_bandwidth_bytes_per_s / 10**9:,.0f}",
            format_ns(spec.launch_overhead_ns),
            "/".join(f"{100 * share:.0f}" for share in _efficiencies(spec)),
            str(spec.sm_count or "-"),
            format_bytes(spec.l2_bytes) if spec.l2_bytes else "-",
        ]
        for spec in specs
    ]
    numbers = ["memory", "GB/s", "launch", "reached %", "SMs", "L2"]
    screen.table(["device", "kind", *(f"{family} TFLOP/s" for family in rates), *numbers], rows, left=2)
    screen.line("reached %: the share of the peak that matrix ops, other ops, and memory traffic reach")
    screen.line()


def _efficiencies(spec: DeviceSpec) -> tuple[float, float, float]:
    return spec.matrix_efficiency, spec.vector_efficiency, spec.memory_efficiency


def _print_links(links: list[LinkSpec], screen: Screen) -> None:
    if links:
        rows = [[s.name, f"{s.bandwidth_bytes_per_s / 10**9:,.1f}", format_ns(s.latency_ns)] for s in links]
        screen.table(["link, one direction", "GB/s", "latency"], rows)
        screen.line()


def _by_source(values: dict[str, Sourced]) -> dict[str, list[str]]:
    """Keys by source, so that each datasheet is printed once."""
    keys_by_source: dict[str, list[str]] = {}
    for key, sourced in values.items():
        keys_by_source.setdefault(f"{sourced.source} ({sourced.date})", []).append(key)
    return keys_by_source
