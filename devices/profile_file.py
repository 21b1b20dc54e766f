"""The slow devices and links of a cluster file: tables [[slow]] and [[degrade]] -> `Profiles`.

[[slow]]
device = "gpu:0"                # full or short name
factor = 2                      # twice as slow
from = "1 ms"                   # the start of the simulated clock unless given
to = "5 ms"                     # for ever unless given

[[slow]]
device = "gpu:1"
factor = 1.5
random = { seed = 7, every = "10 ms", lasts = "1 ms" }    # means of exponential distributions

[[degrade]]
link = "25 Gb Ethernet"         # all links of a model, or one link by its name
factor = 4
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from fractions import Fraction
from functools import cached_property
from typing import Any

from attrs import evolve

from ..errors import InvalidArgumentError
from ..graph.suggestions import suggestion
from .cluster import Cluster
from .profiles import Profiles, RandomWindows, Window
from .tables import check_keys, naming, quantity
from .topology import Link
from .units import parse_ns

_WINDOW_KEYS = ["factor", "from", "to", "random"]
_RANDOM_KEYS = ["seed", "every", "lasts"]
_MOST = 10**6  # a factor


class ProfileReader:
    """Reads tables for the devices and links of a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self.profiles = Profiles()
        self._cluster = cluster

    def add_slow(self, table: Mapping[str, Any], where: str) -> None:
        """Adds a table [[slow]]."""
        check_keys(table, ["device", *_WINDOW_KEYS], where)
        name = _text(table, "device", where)
        with naming(where):
            device = self._cluster.find(name).name
        self.profiles = evolve(self.profiles, slow=(*self.profiles.slow, (device, _windows(table, where))))

    def add_degrade(self, table: Mapping[str, Any], where: str) -> None:
        """Adds a table [[degrade]]."""
        check_keys(table, ["link", *_WINDOW_KEYS], where)
        name = _text(table, "link", where)
        known = dict.fromkeys([link.model for link in self._links] + [link.name for link in self._links])
        if name not in known:
            raise InvalidArgumentError(f"{where}: no link is called {name!r}{suggestion(name, list(known))}")
        self.profiles = evolve(self.profiles, degrade=(*self.profiles.degrade, (name, _windows(table, where))))

    @cached_property
    def _links(self) -> list[Link]:
        """The links that some route takes: from and to the client, between devices of a machine, of pairs."""
        topology, devices = self._cluster.topology, self._cluster.devices
        ends = [(self._cluster.client, device) for device in devices]
        ends += [(a, b) for devices in topology.fabric.hosts.values() for a in devices for b in devices]
        names = [(a.name, b.name) for a, b in ends] + list(topology.rules.pairs)
        for a, b in names:
            with suppress(InvalidArgumentError):  # devices that no link joins
                topology.route(a, b)
                topology.route(b, a)
        return topology.links()


def _windows(table: Mapping[str, Any], where: str) -> Window | RandomWindows:
    factor = _factor(table, where)
    if "random" not in table:
        window = Window(
            factor,
            quantity(table, "from", parse_ns, where),
            quantity(table, "to", parse_ns, where) if "to" in table else None,
        )
        if window.to_ns is not None and window.to_ns <= window.from_ns:
            raise InvalidArgumentError(f"{where}: to = {table['to']!r} must be after from")
        return window
    drawn = table["random"]
    if not isinstance(drawn, Mapping) or "from" in table or "to" in table:
        raise InvalidArgumentError(
            f'{where}: give from and to, or random = {{ seed = 1, every = "10 ms", lasts = "1 ms" }}'
        )
    check_keys(drawn, _RANDOM_KEYS, f"{where}: random")
    for key in _RANDOM_KEYS:
        if key not in drawn:
            raise InvalidArgumentError(f"{where}: random: {key!r} is missing; it needs {', '.join(_RANDOM_KEYS)}")
    seed = drawn["seed"]
    if type(seed) is not int or seed < 0:
        raise InvalidArgumentError(f"{where}: random: seed = {seed!r} must be a whole number of at least 0")
    every, lasts = (quantity(drawn, key, parse_ns, f"{where}: random") for key in ("every", "lasts"))
    if not every or not lasts:
        raise InvalidArgumentError(f"{where}: random: every and lasts must be above 0")
    return RandomWindows(factor, seed, every, lasts)


def _factor(table: Mapping[str, Any], where: str) -> Fraction:
    factor = table.get("factor")
    if isinstance(factor, bool) or not isinstance(factor, int | float) or not 1 <= factor <= _MOST:
        raise InvalidArgumentError(
            f"{where}: factor = {factor!r} must be a number from 1 to {_MOST:,}; 2 is half speed"
        )
    return Fraction(str(factor))


def _text(table: Mapping[str, Any], key: str, where: str) -> str:
    text = table.get(key)
    if not isinstance(text, str):
        raise InvalidArgumentError(f"{where}: {key} = {text!r} must be a name")
    return text
