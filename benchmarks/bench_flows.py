"""The rows "flows/...": transfers that share links on the simulated clock, per transfer.

A fixed number of transfers is under way at any time: when one arrives, the next is asked for, over a drawn route. Eight
share four links; forty share the network cards of 256 hosts, where most have a link to themselves; four hundred leave
as many hosts for one. "Cold" is the first run of a process.
"""

from __future__ import annotations

import sys
from random import Random

from simpy import Environment

from partita.collector import collector_paused
from partita.devices.timing.hardware.network import Network
from partita.devices.topology import Link, Route

from .bench import Bench
from .fresh import fresh
from .rows import Case, Figure, Measured, limit
from .sampling import Sample, interleave, now

_BYTES_PER_S, _LATENCY_NS = 12 * 10**9, 2_000
_SIZES = 10**5, 10**7


def _links(count: int, name: str) -> list[Link]:
    return [Link(f"{name}{index}", "network", "wire", _BYTES_PER_S, _LATENCY_NS) for index in range(count)]


def _pairs(count: int) -> list[Route]:
    """Routes over two of a few links."""
    links = _links(count, "link")
    return [Route((a, b)) for a in links for b in links if a is not b]


def _hosts(count: int) -> list[Route]:
    """Routes between any two hosts: out of one network card and into another."""
    out, into = _links(count, "out"), _links(count, "in")
    return [Route((out[a], into[b])) for a in range(count) for b in range(count) if a != b]


class _Traffic:
    """Asks for `left` transfers, `alive` at a time."""

    def __init__(self, routes: list[Route], left: int) -> None:
        self._draw = Random(0)
        self._routes = routes
        self.left = left
        self.env = Environment()
        self._network = Network(self.env, self)

    def run(self, alive: int) -> None:
        """Until the last one has arrived."""
        for _ in range(alive):
            self._ask()
        self.env.run()

    def started(self, transfer: int, start_ns: int, cause_transfer: int) -> None:
        """Part of `network.Listener`."""

    def arrived(self, transfer: int) -> None:
        """Part of `network.Listener`."""
        if self.left:
            self._ask()

    def _ask(self) -> None:
        self.left -= 1
        self._network.request(self.left, self._draw.choice(self._routes), self._draw.randint(*_SIZES))


async def _transfers(bench: Bench, routes: list[Route], alive: int) -> Measured:
    count = bench.sizes.transfers

    async def ours() -> Sample:
        traffic = _Traffic(routes, count)
        with collector_paused():  # as in a simulation
            before = now()
            traffic.run(alive)
            return now() - before

    taken = await interleave({"ours": ours}, bench.sizes.rounds_when_slow)
    return Measured(Figure.of(taken["ours"], count))


def _into_one(count: int) -> list[Route]:
    """Routes from many hosts into one port."""
    (port,) = _links(1, "in")
    return [Route((out, port)) for out in _links(count, "out")]


async def _cold(bench: Bench) -> Measured:
    count = bench.sizes.transfers
    ended = fresh("benchmarks.bench_flows", str(count))
    return Measured(Figure.of(Sample(*map(float, ended.output.split())), count))


async def _few(bench: Bench) -> Measured:
    return await _transfers(bench, _pairs(4), 8)


async def _many(bench: Bench) -> Measured:
    return await _transfers(bench, _hosts(256), 40)


async def _one_port(bench: Bench) -> Measured:
    return await _transfers(bench, _into_one(400), min(400, bench.sizes.transfers))


CASES = [
    Case("flows/8 alive", "", limit(1 / 20_000, 1 / 40_000), _few),
    Case("flows/40 alive, 256 hosts", "", limit(20e-6), _many),
    Case("flows/40 alive, 256 hosts, cold", "", None, _cold),
    Case("flows/400 alive on one port", "", limit(30e-6), _one_port),
]

if __name__ == "__main__":
    traffic = _Traffic(_hosts(256), int(sys.argv[1]))
    start = now()
    traffic.run(40)
    taken = now() - start
    print(taken.wall_s, taken.cpu_s)
