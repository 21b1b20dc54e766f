"""Representatives and all ranks of a case are simulated, and compared: the makespan, and every event."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from partita.devices import cut, parse_cluster
from partita.devices.timing import Timeline, simulate
from partita.errors import UnimplementedError
from partita.graph.parallel.mesh.mesh import Mesh
from partita.graph.parallel.mesh.write_out import as_representatives, prefix_of, write_out
from tests.laws.outcomes import DIFFERENT, EQUAL, REFUSED, Outcome
from tests.laws.representatives.cases import Program, RanksCase


def timelines(case: RanksCase) -> tuple[Timeline | str, Timeline]:
    """The timelines of representatives, or why they are refused, and of all ranks."""
    cluster, mesh = parse_cluster(case.cluster), case.mesh
    devices = [device.name for device in cluster if device.type == "GPU"][: mesh.devices]
    program = Program(case, devices)

    def simulated(graph: Any, copies: int) -> Timeline:
        targets = [prefix_of(rank) + name for rank in range(copies) for name in program.targets]
        return simulate(cut(graph, cluster, targets=targets), cluster)

    whole = simulated(write_out(program.b.graph(), mesh, devices), mesh.per_stage)
    try:
        return simulated(as_representatives(program.b.graph(), mesh), 1), whole
    except UnimplementedError as error:
        return str(error), whole


def compared(case: RanksCase) -> Outcome:
    """Whether the representatives of a case do what all ranks do."""
    played, whole = timelines(case)
    if isinstance(played, str):
        return (
            Outcome(DIFFERENT, f"ranks are alike, but {played}")
            if _are_alike(case, whole)
            else Outcome(REFUSED, played)
        )
    return difference(played, whole, case.mesh)


def difference(played: Timeline, whole: Timeline, mesh: Mesh) -> Outcome:
    """Whether the timeline of representatives is that of all ranks."""
    if played.makespan_ns != whole.makespan_ns:
        return Outcome(DIFFERENT, f"makespan {played.makespan_ns}, of all ranks {whole.makespan_ns}")
    devices = set(played.devices)
    own, others = (Counter(map(_facts, events)) for events in (played.events, whole.events))
    others = Counter({facts: count for facts, count in others.items() if facts[0] in devices and not _is_copy(facts)})
    if own != others:
        return Outcome(DIFFERENT, f"only {_first(own - others)}, of all ranks {_first(others - own)}")
    return _totals(mesh, played, whole)


def _are_alike(case: RanksCase, whole: Timeline) -> bool:
    """Whether all ranks of each stage do the same at the same time."""
    cluster, per_stage = parse_cluster(case.cluster), case.mesh.per_stage
    names = [device.name for device in cluster if device.type == "GPU"]
    did: dict[str, list[tuple[Any, ...]]] = {}
    for event in whole.events:
        name = re.sub(r"rank_\d+/|_\d+", "", event.node)
        did.setdefault(event.device, []).append((name, event.kind, event.start_ns, event.end_ns))
    stages = [names[stage * per_stage : (stage + 1) * per_stage] for stage in range(case.mesh.pp)]
    return all(sorted(did.get(name, [])) == sorted(did.get(stage[0], [])) for stage in stages for name in stage)


def _totals(mesh: Mesh, played: Timeline, whole: Timeline) -> Outcome:
    """Totals are of all devices."""
    if played.dependency_bound_ns > whole.dependency_bound_ns:
        return Outcome(DIFFERENT, f"bound {played.dependency_bound_ns}, of all ranks {whole.dependency_bound_ns}")
    for what in ("flops", "transferred_bytes", "sources"):
        if getattr(played, what) != getattr(whole, what):
            return Outcome(DIFFERENT, f"{what} {getattr(played, what)}, of all ranks {getattr(whole, what)}")
    if played.totals_by_op() != whole.totals_by_op():
        return Outcome(DIFFERENT, f"totals {played.totals_by_op()}, of all ranks {whole.totals_by_op()}")
    for device, others in played.representatives.items():
        if "CPU" in device and mesh.per_stage > 1:
            continue  # a host, with the memory of several ranks
        if len(others) != mesh.per_stage or any(
            played.peak_bytes[device, "device"] != whole.peak_bytes[other, "device"] for other in others
        ):
            return Outcome(DIFFERENT, f"{device} does not stand for {others}")
    return Outcome(EQUAL)


def _facts(event: Any) -> tuple[Any, ...]:
    """What is compared of an event: all but its cause, which is a number, and the numbers in names of transfers.

    Where several links limit a copy alike, any of them may be named.
    """
    known = event._replace(cause=-1, low_ns=event.low_ns or -1, high_ns=event.high_ns or -1)
    if event.kind in ("compute", "collective", "launch"):
        return (*known,)
    return (*known._replace(node=re.sub(r"_\d+", "", event.node), provenance=""),)


def _is_copy(facts: tuple[Any, ...]) -> bool:
    """Whether another rank does something on a host, which several share."""
    return "CPU" in facts[0] and re.search("rank[_/]", facts[2]) is not None


def _first(facts: Counter[tuple[Any, ...]]) -> object:
    return min(facts, key=lambda fact: (fact[5], fact[6]), default=None)
