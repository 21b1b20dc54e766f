"""`partita devices`: the catalog of models of devices and links, with the source of every number.

The list of all models is a narrow table. One model has its numbers on lines of their own, then each source with the
numbers that come from it, those of one table of the catalog on a line:

    sources of H100-SXM
      recalled, not verified (2026-11-23)
        sm_count 132 SMs
        l2 50 MiB
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import asdict

from ...devices import Calibration
from ...devices.catalog import Sourced, aliases_of, device_names, device_spec, link_names, link_spec, provenance
from ...devices.link import LinkSpec
from ...devices.spec import FAMILIES, DeviceSpec
from ...devices.timing.fits.calibration import PARTS
from ...devices.timing.fits.kernels.families import FAMILIES as KERNEL_FAMILIES
from ...devices.units import format_bytes, format_ns, format_rate
from ...graph.suggestions import suggestion
from ..report import NOT_CALIBRATED
from .failure import ConfigurationError
from .screen import Screen

_SHOWN_RATES = ("bf16", "fp32")  # of the many, in the narrow table of all models


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
    if name is None:
        _print_devices(specs, screen)
        _print_links(links, screen)
        screen.line("partita devices NAME lists all numbers of a model, with their sources")
        return
    for lines in (*map(_spec_lines, specs), *map(_link_lines, links)):
        for line in lines:
            screen.line(line)
    screen.line(f"sources of {name}")
    for source, values in _by_source(provenance(name)).items():
        screen.line(f"  {source}")
        for table, texts in values.items():
            screen.line(f"    {f'{table}: ' if table else ''}{', '.join(texts)}")


def _device(spec: DeviceSpec) -> dict[str, object]:
    return {**asdict(spec), "aliases": list(aliases_of(spec.name)), "sources": _sources(spec.name)}


def _link(spec: LinkSpec) -> dict[str, object]:
    return {**asdict(spec), "sources": _sources(spec.name)}


def _sources(name: str) -> dict[str, object]:
    return {key: asdict(sourced) for key, sourced in provenance(name).items()}


def _print_devices(specs: list[DeviceSpec], screen: Screen) -> None:
    rows = [
        [
            spec.name,
            spec.kind,
            *(format_rate(spec.peak_flops_per_s.get(family)) for family in _SHOWN_RATES),
            format_bytes(spec.memory_bytes),
            f"{spec.memory_bandwidth_bytes_per_s / 10**9:,.0f}",
            "yes" if _fitted_parts(spec) else "-",
        ]
        for spec in specs
    ]
    screen.table(["device", "kind", *_SHOWN_RATES, "memory", "GB/s", "fitted"], rows, left=2)
    screen.line("bf16, fp32: peak TFLOP/s; fitted: to measurements; the times of others are assumed, not calibrated")
    screen.line()


def _fitted_parts(spec: DeviceSpec) -> list[str]:
    """What has a model in the catalog that was fitted to measurements of this device."""
    fits = Calibration.of_catalog().device(spec.name)
    return [] if fits is None else [part.replace("_", " ") for part in (*PARTS, *KERNEL_FAMILIES) if part in fits.table]


def _spec_lines(spec: DeviceSpec) -> Iterator[str]:
    """All numbers of a model of devices, each on a line, and what its times rest on."""
    names = ", ".join(aliases_of(spec.name))
    yield f"{spec.name}, {spec.kind}" + (f", also called {names}" if names else "")
    for family in FAMILIES:
        if family in spec.peak_flops_per_s:
            yield f"  {family}  {format_rate(spec.peak_flops_per_s[family])} TFLOP/s"
    yield f"  memory  {format_bytes(spec.memory_bytes)}, {spec.memory_bandwidth_bytes_per_s / 10**9:,.0f} GB/s"
    yield f"  launch  {format_ns(spec.launch_overhead_ns)}"
    shares = spec.matrix_efficiency, spec.vector_efficiency, spec.memory_efficiency
    matrix, vector, memory = (f"{100 * share:.0f} %" for share in shares)
    yield f"  reached  {matrix} of the peak by matrix ops, {vector} by other ops, {memory} by memory traffic"
    for what, text in _known_numbers(spec).items():
        if text:
            yield f"  {what}  {text}"
    parts = _fitted_parts(spec)
    yield f"  fitted to measurements  {', '.join(parts)}" if parts else f"  note: {NOT_CALIBRATED}"


def _known_numbers(spec: DeviceSpec) -> dict[str, str]:
    """The numbers that not every model has; "" for those that this one does not have."""
    share = spec.sustained_clock
    return {
        "clock": f"{100 * share:.0f} % of that of the peaks is kept under load" if share < 1 else "",
        "shortest kernel": format_ns(spec.kernel_floor_ns) if spec.kernel_floor_ns else "",
        "ops at a time": str(spec.lanes) if spec.lanes > 1 else "",
        "SMs": str(spec.sm_count or ""),
        "L2": format_bytes(spec.l2_bytes) if spec.l2_bytes else "",
        "compute capability": f"{spec.compute_capability / 10:.1f}" if spec.compute_capability else "",
        "memory of the host": format_bytes(spec.host_memory_bytes) if spec.host_memory_bytes else "",
        "link to the host": spec.host_link or "",
        "link to others in it": spec.peer_link or "",
    }


def _link_lines(spec: LinkSpec) -> Iterator[str]:
    yield f"{spec.name}, link"
    yield f"  one direction  {spec.bandwidth_bytes_per_s / 10**9:,.1f} GB/s, latency {format_ns(spec.latency_ns)}"


def _print_links(links: list[LinkSpec], screen: Screen) -> None:
    rows = [[s.name, f"{s.bandwidth_bytes_per_s / 10**9:,.1f}", format_ns(s.latency_ns)] for s in links]
    screen.table(["link, one direction", "GB/s", "latency"], rows)
    screen.line()


def _by_source(values: dict[str, Sourced]) -> dict[str, dict[str, list[str]]]:
    """By source, so that each datasheet is printed once, the values by the table of the catalog that they are in."""
    found: dict[str, dict[str, list[str]]] = {}
    for key, sourced in values.items():
        table, _, name = key.rpartition(".")
        texts = found.setdefault(f"{sourced.source} ({sourced.date})", {}).setdefault(table, [])
        texts.append(f"{name} {sourced.value}")
    return found
