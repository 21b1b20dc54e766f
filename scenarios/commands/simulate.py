"""`partita simulate`: how long a step takes, from shapes and models of hardware.

No kernel runs. The numbers equal those of `partita run` for the same request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ...devices import Cluster
from ...devices.timing import BASIS, Timeline, simulate as simulate_partitions
from ...devices.timing.memory.kinds import MemoryPlace
from ...devices.timing.ordering.order import Order
from ...devices.units import format_bytes, format_ns
from ...errors import InvalidArgumentError, Reason
from ...graph import Graph
from ...graph.formats.traces import TraceSource
from ..report import NOT_CALIBRATED
from ..report.memory import memory_line, shortage_headline, shortage_lines
from .choices import order_text
from .costs import check_costs, cost_source_of
from .failure import DOES_NOT_FIT, ConfigurationError
from .partition import place_and_cut
from .reporting.step_outputs import StepOutputs
from .request import Loaded, Request, load
from .screen import Screen, of_nodes

_NS_PER_S = 1e9
_MIN_BAR, _MAX_BAR, _AROUND_BAR = 20, 100, 30
_SHORTAGES, _DRAWN = 4, 16  # memories that are too small, and devices with bars, on a terminal
_BESIDE_BAR = len("  |") + len("| 100.0 %  ")


class StepNotes(NamedTuple):
    """What the builder of a step knows of it: warnings, as sentences, and how many tokens it is for, 0 if for none."""

    warnings: Sequence[str] = ()
    tokens: int = 0
    advice: Callable[[int], str] | None = None
    """says what makes the step fit in so many bytes"""

    def rate(self, timeline: Timeline) -> dict[str, float]:
        """Tokens per second, by the key of JSON; nothing for a step without tokens."""
        return {"tokens_per_s": self.tokens * _NS_PER_S / timeline.makespan_ns} if self.tokens else {}


def simulate(request: Request, order: Order, as_json: bool, outputs: StepOutputs) -> int:
    """Prints the simulated time of a step of the request; returns the exit code, which says whether it fits in memory.

    Raises ConfigurationError for a feed that does not fit and for what a flag has to say, InvalidArgumentError for a
    step of 0 ns, and UnimplementedError for nodes that cannot be timed.
    """
    screen = Screen()
    outputs.check(request.files())
    check_costs(request)
    if request.trace_times and request.trace_in is None:
        raise ConfigurationError("--trace-times: no trace to take times from; add --trace-in FILE")
    recorded = request.recorded()
    return timed(load(request, screen), screen, as_json, outputs, recorded, order=order)


def timed(
    loaded: Loaded,
    screen: Screen,
    as_json: bool,
    outputs: StepOutputs,
    recorded: TraceSource | None = None,
    order: Order = "ready",
    about: StepNotes | None = None,
) -> int:
    """Prints the simulated time of a step of a loaded request, with what is known `about` it; the exit code.

    Raises as `simulate`.
    """
    known = about or StepNotes()
    parts = place_and_cut(loaded, screen)
    try:
        timeline = simulated(loaded, parts, screen, recorded, order)
    except InvalidArgumentError as error:
        if error.reason is Reason.NO_TIME:
            raise
        raise ConfigurationError(str(error)) from error
    outputs.write(timeline, parts, loaded.request.graph.name, screen)
    if as_json:
        document = summary(timeline, loaded.cluster)
        screen.json({**document, **known.rate(timeline), "warnings": [*known.warnings, *timeline.warnings]})
    else:
        show(timeline, loaded.cluster, screen, order, known.advice)
        for rate in known.rate(timeline).values():
            screen.line(f"{known.tokens:,} tokens a step, {rate:,.0f} tokens/s")
        for warning in known.warnings:
            screen.text(f"note: {warning}")
        outputs.say(screen)
    return DOES_NOT_FIT if timeline.too_small else 0


def simulated(
    loaded: Loaded,
    parts: Mapping[str, Graph],
    screen: Screen,
    trace: TraceSource | None = None,
    order: Order = "ready",
) -> Timeline:
    """The timeline of one step over the partition graphs of a request, with what the trace of a real step tells."""
    costs = cost_source_of(loaded.request, parts, loaded.cluster)
    with screen.working(f"simulating {of_nodes(*parts.values())}") as on_progress:
        return simulate_partitions(
            parts,
            loaded.cluster,
            feeds=loaded.fed,
            shapes=loaded.shapes,
            trip_counts=loaded.choices.trip_counts,
            branches=loaded.choices.branches,
            trace=trace,
            trace_times=loaded.request.trace_times,
            assumed_size=loaded.request.assume_size,
            cost_source=costs,
            order=order,
            on_progress=on_progress,
        )


def show(
    timeline: Timeline,
    cluster: Cluster,
    screen: Screen,
    order: Order = "ready",
    advice: Callable[[int], str] | None = None,
) -> None:
    """Prints the makespan, what does not fit, a row per device, what the fullest holds, the picture, and assumptions.

    An order other than the usual one is named; `advice` says what makes the step fit.
    """
    short = cluster.short_names.shorten
    low, high = _bounds(timeline)
    headline = shortage_headline(timeline, cluster)
    screen.line(f"simulated step time: {format_ns(timeline.makespan_ns)} ({timeline.basis}){headline}")
    for line in shortage_lines(timeline, cluster, advice, None if screen.width is None else _SHORTAGES):
        screen.line(line)
    if order != "ready":
        screen.line(f"order: {order_text(order)}")
    within = "unknown" if low is None or high is None else f"{format_ns(low)} to {format_ns(high)}"
    sources = ", ".join(f"{source} {runs:,}" for source, runs in timeline.sources.items()) or "none"
    screen.line(f"80 % of steps: {within}; op times: {sources}")
    if timeline.trace_coverage is not None:
        screen.line(timeline.trace_coverage.text())
    has_collectives = bool(timeline.columns.of_kind("collective").any())
    stands_for = timeline.representatives
    rows = [
        [
            short(device),
            *((f"{len(stands_for[device])}",) if stands_for else ()),
            cluster.find(device).spec.name,
            f"{100 * timeline.busy_fraction(device):.1f} %",
            format_ns(timeline.busy_ns(device)),
            *(map(format_ns, timeline.communication(device)) if has_collectives else ()),
            format_bytes(timeline.peak_memory_bytes(device)),
        ]
        for device in cluster.names
        if device in timeline.devices
    ]
    communication = ["exposed comm.", "hidden comm."] if has_collectives else []
    counts = ["stands for"] if stands_for else []
    heads = ["device", *counts, "model", "busy", "compute", *communication, "peak memory"]
    screen.table(heads, rows, left=2 + len(counts), least=("compute", "peak memory"))
    if memory := memory_line(timeline, cluster):
        screen.line(memory)
    screen.line()
    most_devices = None if screen.width is None else _DRAWN
    screen.text(short(timeline.render(_bar_width(timeline, short, screen), most_devices=most_devices)))
    if timeline.basis == BASIS:
        screen.line(f"note: {NOT_CALIBRATED}")


def _bar_width(timeline: Timeline, short: Callable[[str], str], screen: Screen) -> int:
    """What the names of streams leave of a terminal's width, so that a bar and its name are on one line."""
    streams = {stream for device in timeline.devices for stream in timeline.streams(device)}
    around = _AROUND_BAR
    if screen.width is not None:
        around = max(around, _BESIDE_BAR + max((len(short(stream)) for stream in streams), default=0))
    return min(max(screen.picture_width - around, _MIN_BAR), _MAX_BAR)


def _bounds(timeline: Timeline) -> tuple[int, int] | tuple[None, None]:
    """The interval of the makespan; None where a source does not say how sure it is."""
    try:
        return timeline.interval_ns()
    except InvalidArgumentError:
        return None, None


def summary(timeline: Timeline, cluster: Cluster) -> dict[str, object]:
    """The object that `simulate --json` prints: times in ns, sizes in bytes, shares of the makespan between 0 and 1."""
    low_ns, high_ns = _bounds(timeline)
    return {
        "fits": not timeline.too_small,
        "makespan_ns": timeline.makespan_ns,
        "low_ns": low_ns,
        "high_ns": high_ns,
        "times": timeline.basis,
        "sources": timeline.sources,
        "dependency_bound_ns": timeline.dependency_bound_ns,
        "events": int(timeline.columns.runs.sum()),
        "mesh": timeline.representatives.mesh or None,
        "flops": timeline.flops,
        "transferred_bytes": timeline.transferred_bytes,
        "devices": [
            {
                "device": name,
                "stands_for": len(timeline.representatives.get(name, (name,))),
                "model": cluster.find(name).spec.name,
                "busy_fraction": timeline.busy_fraction(name),
                "busy_ns": timeline.busy_ns(name),
                **dict(
                    zip(
                        ("exposed_communication_ns", "hidden_communication_ns"),
                        timeline.communication(name),
                        strict=True,
                    )
                ),
                "peak_memory_bytes": timeline.peak_memory_bytes(name),
                "streams": {
                    stream: {
                        "busy_ns": timeline.busy_ns(name, stream),
                        "busy_fraction": timeline.busy_fraction(name, stream),
                    }
                    for stream in timeline.streams(name)
                },
            }
            for name in (timeline.representatives or dict.fromkeys([*cluster.names, *timeline.devices]))
        ],
        "memory": [_peak(timeline, device, place) for device, place in timeline.peak_bytes],
        "ops": [total._asdict() for total in timeline.totals_by_op()],
        "critical_path": [
            {"device": e.device, "node": e.node, "op": e.op, "start_ns": e.start_ns, "end_ns": e.end_ns}
            for e in timeline.critical_path()
        ],
        "trace": None if timeline.trace_coverage is None else timeline.trace_coverage._asdict(),
        "warnings": list(timeline.warnings),
        "assumed": [assumption._asdict() for assumption in timeline.assumed],
    }


def _peak(timeline: Timeline, device: str, place: MemoryPlace) -> dict[str, object]:
    """The peak of one memory, with the tensors that fill it."""
    peak = timeline.memory(device, place)
    return {
        "device": device,
        "place": place,
        "peak_bytes": peak.peak_bytes,
        "limit_bytes": peak.limit_bytes,
        "fits": peak.fits,
        "at_ns": peak.at_ns,
        "by_category": peak.by_category,
        "tensors": [tensor._asdict() for tensor in peak.tensors],
    }
