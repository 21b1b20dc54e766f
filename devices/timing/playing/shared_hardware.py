"""The hardware on which steps are played, and the log of it: entries, and the activations that their rows belong to.

A simulation has hardware for its one step. The clock of a session has some for all steps that are under way together:
they share devices and the log, and each has a player of its own. What the engine tells of a row is passed on to the
player of its activation:

    rows        0-9                  10-14                15-24
    activation  the step             an iteration         another step
    player      1                    1                    2
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from ..bodies.body import turn_of
from ..collectives.plan import plan_of
from ..hardware.engine import Duty, Engine
from ..hardware.iterations import RowTurn
from .activation import Activation, Place, PlayedRun

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from ...cluster import Cluster
    from ..bodies.body import Body
    from ..collectives.plan import CollectivePlan
    from ..fits.calibration import Calibration
    from ..hardware.streams import ComputePlace, Feeder
    from ..representatives.representatives import Representatives


class Priorities(Protocol):
    """Who runs first where several could."""

    def of(self, activation: Activation) -> Sequence[float]:
        """By node of its body; asked once, when the activation begins."""


class SharedHardware:
    """The engine of a cluster, its log, and by row the activation that owns it and its time."""

    def __init__(
        self,
        cluster: Cluster,
        calibration: Calibration | None = None,
        *,
        is_unlimited: bool = False,
        representatives: Representatives | None = None,
        ordered_by: Callable[[SharedHardware], Priorities] | None = None,
    ) -> None:
        """`is_unlimited` is as in `Engine`; `calibration` times collectives, None is the catalog's.

        `ordered_by` makes the priorities by which ready nodes are taken; without it they are as they come.
        """
        self.cluster = cluster
        self.representatives = representatives
        """whom the nodes of the step stand for; None if each stands for itself"""
        self.is_unlimited = is_unlimited
        self.launched: Callable[[int, int, int], bool] = self._launched
        self.ended: Callable[[int, int], None] = self._ended
        self.time_ns: Callable[[int], int] = self._time_ns
        self.priorities: list[float] = []
        """by row, if there are any"""
        priority_of = None if ordered_by is None else self.priorities.__getitem__
        self.engine = Engine(cluster, self, self.plan_of, is_unlimited=is_unlimited, priority_of=priority_of)
        self.log = self.engine.log
        self.owners: list[Activation] = []
        self.times: list[int] = []
        """negative where the player has to be asked"""
        self._calibration = calibration
        self._plans: dict[tuple[str, tuple[int, ...], int], CollectivePlan] = {}
        self._places: dict[tuple[int, bool], tuple[Body, Sequence[ComputePlace | None]]] = {}
        self._tables: dict[bool, NDArray[np.object_]] = {}
        self._ordered_by = None if ordered_by is None else ordered_by(self)

    def begin(self, body: Body, place: Place, run: PlayedRun | None, player: Feeder) -> Activation:
        """An activation of a player, with rows of its own."""
        places = self._places_of(body, overlaps=run is not None and run.overlaps)
        activation = Activation(body, len(self.owners), place, run, player, places)
        self.owners += [activation] * len(body)
        self.times += body.time_ns
        if self._ordered_by is not None:
            self.priorities += self._ordered_by.of(activation)
        return activation

    @property
    def is_ordered(self) -> bool:
        """Whether ready nodes are taken by priority."""
        return self._ordered_by is not None

    def _places_of(self, body: Body, *, overlaps: bool) -> Sequence[ComputePlace | None]:
        """By node where it waits for its device; None of nodes that pass, and of transfers."""
        known = self._places.get((id(body), overlaps))
        if known is None:
            duties = body.duty if body.asked is None else body.asked.duty
            waits = (duties >= Duty.COMPUTE) & (duties <= Duty.WAIT)
            numbers = np.where(waits, body.device.astype(np.int64) * len(Duty) + duties, -1)
            known = self._places[id(body), overlaps] = (body, self._all_places(overlaps=overlaps)[numbers].tolist())
        return known[1]

    def _all_places(self, *, overlaps: bool) -> NDArray[np.object_]:
        """The places of all devices, by device and duty; the last one is None."""
        table = self._tables.get(overlaps)
        if table is None:
            table = self._tables[overlaps] = np.full(len(self.cluster.names) * len(Duty) + 1, None, object)
            for device in range(len(self.cluster.names)):
                for duty in (Duty.COMPUTE, Duty.HOST, Duty.WAIT):
                    table[device * len(Duty) + duty] = self.engine.place(duty, device, overlaps=overlaps)
        return table

    def plan_of(self, kind: str, devices: tuple[int, ...], size_bytes: int) -> CollectivePlan:
        """The plan of a collective among devices by number; equal ones are planned once."""
        key = kind, devices, size_bytes
        plan = self._plans.get(key)
        if plan is None:
            ranks = [self.cluster.devices[number].name for number in devices]
            plan = plan_of(kind, ranks, size_bytes, self.cluster, self._calibration)
            if self.representatives is not None:
                plan = self.representatives.plan(plan, devices)
            self._plans[key] = plan
        return plan

    def serve(self, player: Feeder) -> None:
        """All rows are those of one player, who knows their times: nobody has to look whose a row is."""
        self.launched, self.ended, self.time_ns = player.launched, player.ended, self.times.__getitem__

    # The protocol `streams.Feeder`, with `launched`, `ended` and `time_ns`

    def _time_ns(self, row: int) -> int:
        """The time of a row on its device."""
        time_ns = self.times[row]
        return time_ns if time_ns >= 0 else self.owners[row].player.time_ns(row)

    def turn(self, row: int) -> RowTurn:
        """What decides when a row of overlapping iterations runs."""
        activation = self.owners[row]
        if activation.body.asked is not None:
            return activation.player.turn(row)
        return turn_of(activation.body, row - activation.base, activation.base)

    def _launched(self, row: int, ticket: int, entry: int) -> bool:
        """A row is launched."""
        return self.owners[row].player.launched(row, ticket, entry)

    def _ended(self, row: int, entry: int) -> None:
        """A row has ended."""
        self.owners[row].player.ended(row, entry)
