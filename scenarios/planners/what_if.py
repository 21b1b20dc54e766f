"""What a faster link, memory or rate would change: the same step on a machine with some of its rates scaled.

    changed(machine, ["nic.bandwidth=2x"]).factors          ports 1.28 where PCIe is the next to limit, the others 1
    sensitivities(step, machine, split)                      {"products": 6.1, "memory": 1.9, "inside": 0.4, ...}

A link is named by its model in the catalog, or `link` for all of them and `nic` for those between machines. The way
between two GPUs is as fast as its slowest link: one that is not the slowest changes nothing, and beyond the second
slowest a faster one gains no more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from ...devices.timing.collectives.group import RankGroup
from ...devices.topology import Route
from ...errors import InvalidArgumentError
from ...graph.suggestions import meant
from ..models.split import Split
from .configurations import Configurations
from .estimates import Estimate
from .estimating import estimates_of
from .machine import Machine
from .memory import memory_columns
from .step import PlannedStep
from .times import step_times

_MORE = 1.1  # of the table of sensitivities


def changed(machine: Machine, changes: Sequence[str]) -> Machine:
    """The machine with changes such as "link.bandwidth=2x", "memory.bandwidth=1.5x" or "launch_overhead=0.5x".

    `peak` scales products and attention. Raises InvalidArgumentError for another text, for what the machine does not
    have, with the nearest name, and for one that is given twice.
    """
    ways = _ways(machine)
    scaled: dict[str, float] = {}
    for text in changes:
        name, factor = _change(text)
        for each in _names(name, machine, ways):
            if each in scaled:
                raise InvalidArgumentError(f"{text!r}: {each} is changed twice; leave one out")
            scaled[each] = factor
    factors = {"products": scaled.get("peak", 1.0), "memory": scaled.get("memory.bandwidth", 1.0)}
    factors["launches"] = 1 / scaled.get("launch_overhead", 1.0)
    for way, rates in ways.items():
        after = [rate * scaled.get(f"{model}.bandwidth", 1.0) for model, rate in rates.items()]
        factors[way] = min(after) / min(rates.values())
    return machine.faster(factors)


def sensitivities(step: PlannedStep, machine: Machine, split: Split) -> Mapping[str, float]:
    """By each rate of the machine the percent of the step's time that ten percent more of it saves.

    Only rates that the machine has: none inside hosts of one GPU, none between the ports of one host.
    """
    rates = ["products", "memory", *_ways(machine), "launches"]
    row = Configurations.of([split])
    machines = [machine, *(machine.faster({rate: _MORE}) for rate in rates)]
    whole, *others = (float(step_times(step, it, row).step_ns[0]) for it in machines)
    return {rate: 100 * (1 - ns / whole) for rate, ns in zip(rates, others, strict=True)}


def estimated(step: PlannedStep, machine: Machine, split: Split) -> Estimate:
    """What is said of one split on a machine, whose factors count."""
    row = Configurations.of([split])
    times, memory = step_times(step, machine, row), memory_columns(step, row)
    return estimates_of(step, machine, row, times, memory, np.arange(1))[0]


def _ways(machine: Machine) -> dict[str, Mapping[str, float]]:
    """Of the ways inside a host and between hosts: by model of link what a GPU has of its rate, as rings use them."""
    both = RankGroup(machine.cluster.topology, machine.by_host[:2], machine.calibration)
    ways = {}
    if machine.per_host > 1:
        ways["inside"] = _rates([route for ring in both.inside for route in ring])
    if machine.hosts > 1:
        ways["ports"] = _rates(both.rings)
    return {way: rates for way, rates in ways.items() if rates}


def _rates(routes: Sequence[Route]) -> Mapping[str, float]:
    """By model of link the slowest rate of a route over it; routes that are used at once share a link."""
    links = [link for route in routes for link in route.links]
    users = Counter(links)
    rates: dict[str, float] = {}
    for link in links:
        rate = link.bandwidth_bytes_per_s / users[link]
        rates[link.model] = min(rate, rates.get(link.model, rate))
    return rates


def _change(text: str) -> tuple[str, float]:
    """The name of a rate, and how many times as large it becomes."""
    name, _, times = (part.strip() for part in text.partition("="))
    try:
        factor = float(times.removesuffix("x")) if times.endswith("x") else 0.0
    except ValueError:
        factor = 0.0
    if not name or not 0 < factor < np.inf:
        raise InvalidArgumentError(f"{text!r} is no change; write it as link.bandwidth=2x")
    return name, factor


def _names(name: str, machine: Machine, ways: Mapping[str, Mapping[str, float]]) -> list[str]:
    """What a name changes: rates of the device, or links by model."""
    every = list(dict.fromkeys(f"{model}.bandwidth" for rates in ways.values() for model in rates))
    ports = [f"{machine.cluster.topology.fabric.nic(machine.by_host[0][0]).link.name}.bandwidth"]
    groups = {"link.bandwidth": every, "nic.bandwidth": [port for port in ports if port in every]}
    groups |= {each: [each] for each in (*every, "peak", "memory.bandwidth", "launch_overhead")}
    if not groups.get(name):
        known = [it for it, changes in groups.items() if changes]
        raise InvalidArgumentError(
            f"{name!r} is no rate of these machines{meant(name, known)}; they have {', '.join(known)}"
        )
    return groups[name]
