"""How long ranks take: the ops of stages priced once each, and played as a host thread and a stream play them.

A GPU has a host thread that launches one kernel after the other, and a stream that runs them in that order. What comes
after an exchange is launched when it has ended. So between two exchanges, with launches of 5 us and kernels a, b, c:

    launch    |--a--|--b--|--c--|
    stream          |a|   |------b------|--c--|        end = max over kernels k of (launches up to k + kernels from k)

A stage is the sum over such pieces, of exchanges, and of what the host waits for. In a layer of few rows it is the
launches that count, in one with many the kernels; no graph of kernels is recorded and replayed (CUDA graphs).

How sure a time is: kernels of one class with times of one source err together, different ones apart
(`devices/timing/interval.py`). Each moves to its bounds alone, and the changes of the end are put together by squares.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ....devices.timing.collectives.collective_time import collective_time
from ....devices.timing.costs.classes import op_class
from ....devices.timing.costs.fitted import FittedSource
from ....devices.timing.costs.source import CostRequest, costs_of
from ....graph.arrays import Flags, Floats
from ..machine import Machine
from .operations import HostWait, RankExchange, RankItem, RankKernel
from .program import RepeatedOps, StageProgram

_LINK_FACTOR = 1.42
"""of the interval of a transfer: as that of the roofline, without its floor"""


class Duration(NamedTuple):
    """A time with the bounds of its 80 % interval, in ns."""

    time_ns: float
    low_ns: float
    high_ns: float


class _Timed(NamedTuple):
    """An item: its time with bounds, its class, and whether it is launched (else all before it has ended)."""

    time_ns: float
    low_ns: float
    high_ns: float
    err: str
    is_launched: bool


class _Pieces(NamedTuple):
    """The items of a stage in columns; `times` has a row for the times, then low bounds and high bounds by class."""

    times: Floats
    classes: int
    is_launched: Flags


class StageClock:
    """Times stages of programs on a machine, where a replica's ranks are neighbours: stage, then ep, then tp."""

    def __init__(self, machine: Machine, source: FittedSource) -> None:
        self._machine, self._source = machine, source
        self._kernels: dict[RankKernel, _Timed] = {}
        self._exchanges: dict[tuple[RankExchange, int, int], _Timed] = {}

    def learn(self, stages: Iterable[StageProgram]) -> None:
        """Prices the kernels of many stages at once: each that is new, once."""
        every = (item for stage in stages for part in stage.parts for item in part.items)
        new = [kernel for kernel in dict.fromkeys(_kernels(every)) if kernel not in self._kernels]
        costs = costs_of(self._source, [CostRequest(*kernel, self._machine.spec) for kernel in new])
        for kernel, cost in zip(new, costs, strict=True):
            low_ns = cost.time_ns if cost.low_ns is None else cost.low_ns
            high_ns = cost.time_ns if cost.high_ns is None else cost.high_ns
            err = f"{cost.provenance} {op_class(kernel.properties.op)}"
            self._kernels[kernel] = _Timed(cost.time_ns, low_ns, high_ns, err, is_launched=True)

    def duration(self, stage: StageProgram, tp: int, ep: int) -> Duration:
        """The time of a stage that `learn` has seen."""
        pieces = self._pieces(stage.parts, tp, ep)
        ends = _ends(pieces.times, pieces.is_launched, self._launch_ns)
        time_ns, first_high = float(ends[0]), 1 + pieces.classes
        less, more = (np.sqrt(np.square(some - time_ns).sum()) for some in (ends[1:first_high], ends[first_high:]))
        return Duration(time_ns, max(0.0, time_ns - float(less)), time_ns + float(more))

    def transfer(self, size_bytes: int, sender: int, receiver: int) -> Duration:
        """The way of activations from a rank to that of the next stage."""
        way = self._machine.cluster.topology.route(self._rank(sender), self._rank(receiver))
        time_ns = float(way.transfer_ns(size_bytes))
        return Duration(time_ns, time_ns, way.latency_ns + _LINK_FACTOR * (time_ns - way.latency_ns))

    @property
    def _launch_ns(self) -> float:
        """Of a kernel; on a CPU it is part of the op."""
        spec = self._machine.spec
        return float(spec.launch_overhead_ns) if spec.launches_kernels else 0.0

    def _rank(self, number: int) -> str:
        at, index = divmod(number, self._machine.per_host)
        return self._machine.by_host[at][index].name

    def _pieces(self, parts: Sequence[RepeatedOps], tp: int, ep: int) -> _Pieces:
        timed = [[one for item in part.items for one in self._timed(item, tp, ep)] for part in parts]
        classes = sorted({one.err for part in timed for one in part})
        repeated = [(part, repeat.times) for part, repeat in zip(timed, parts, strict=True)]
        columns = [np.tile(_by_class(part, classes), (1, times)) for part, times in repeated]
        launched = [np.tile([one.is_launched for one in part], times) for part, times in repeated]
        return _Pieces(np.hstack(columns), len(classes), np.concatenate(launched))

    def _timed(self, item: RankItem, tp: int, ep: int) -> tuple[_Timed, ...]:
        """What is launched, or waited for; nothing of an exchange that is over by then."""
        if isinstance(item, RankKernel):
            return (self._kernels[item],)
        if isinstance(item, HostWait):
            time_ns = float(item.times * self._host_latency_ns)
            return (_Timed(time_ns, time_ns, time_ns, "links", is_launched=False),)
        if isinstance(item, RankExchange):
            return (self._exchange(item, tp, ep),)
        whole = self._exchange(item.exchange, tp, ep)
        meanwhile_ns = sum(self._kernels[one].time_ns for one in item.kernels)
        if whole.time_ns <= meanwhile_ns:
            return ()
        left = [max(0.0, time_ns - meanwhile_ns) for time_ns in whole[:3]]
        return (_Timed(left[0], left[1], left[2], whole.err, is_launched=False),)

    @property
    def _host_latency_ns(self) -> int:
        """Of the way between a device and its host."""
        name = self._rank(0)
        return self._machine.cluster.topology.route(name, name, dst_on_host=True).latency_ns

    def _exchange(self, item: RankExchange, tp: int, ep: int) -> _Timed:
        key = item, tp, ep
        if key not in self._exchanges:
            self._exchanges[key] = self._exchanged(item, tp, ep)
        return self._exchanges[key]

    def _exchanged(self, item: RankExchange, tp: int, ep: int) -> _Timed:
        numbers = range(tp) if item.axis == "tp" else range(0, ep * tp, tp)
        ranks, machine = [self._rank(number) for number in numbers], self._machine
        cost = collective_time(item.kind, ranks, item.size_bytes, machine.cluster, calibration=machine.calibration)
        beside = np.array([self._kernels[one][:3] for one in item.beside], np.float64).reshape(-1, 3)
        times = np.maximum(cost[:3], np.maximum(beside, self._launch_ns).sum(axis=0)).tolist()
        return _Timed(times[0], times[1], times[2], "collectives", is_launched=False)


def _by_class(part: Sequence[_Timed], classes: Sequence[str]) -> Floats:
    """Rows of times: as they are, then with the low bounds of each class, then with its high bounds."""
    time_ns, low_ns, high_ns = np.array([one[:3] for one in part], np.float64).T
    of_class = np.array([[one.err == each for one in part] for each in classes])
    return np.vstack([time_ns, np.where(of_class, low_ns, time_ns), np.where(of_class, high_ns, time_ns)])


def _kernels(items: Iterable[RankItem]) -> Iterator[RankKernel]:
    for item in items:
        if isinstance(item, RankKernel):
            yield item
        elif isinstance(item, RankExchange):
            yield from item.beside


def _ends(time_ns: Floats, is_launched: Flags, launch_ns: float) -> Floats:
    """The end of each row of times [rows, items].

    In a piece from a to b it is max over k of (launches from a to k + times from k to b), which with sums from the
    beginning on is max(launches[k] - times[k - 1]) + times[b] - launches[a - 1].
    """
    launches = np.cumsum(np.where(is_launched, launch_ns, 0.0))
    done = np.cumsum(time_ns, axis=1)
    goes_on = is_launched[1:] & is_launched[:-1]
    first = np.concatenate([[0], 1 + np.flatnonzero(~goes_on)])
    last = np.concatenate([first[1:], [len(is_launched)]]) - 1
    before = np.hstack([np.zeros((len(done), 1)), done[:, :-1]])
    latest = np.maximum.reduceat(launches - before, first, axis=1)
    launched_before = np.where(first > 0, launches[first - 1], 0.0)
    ends: Floats = (latest + done[:, last] - launched_before).sum(axis=1)
    return ends
