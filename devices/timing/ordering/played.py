"""Plays a script in the order that the caller of a simulation has chosen."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from ....errors import InvalidArgumentError
from ..playing.model import ModelOracle
from ..playing.player import Player
from ..playing.shared_hardware import Priorities, SharedHardware
from .agreement import check_agreement, check_counted
from .critical_path import CriticalPath
from .given import GivenPriorities

if TYPE_CHECKING:
    from ..bodies.planning import Planner
    from ..bodies.scripts import Script
    from .order import Order


_OrderedBy = Callable[[SharedHardware], Priorities]


def played_in_order(script: Script, planner: Planner, order: Order, *, folds: bool) -> Player:
    """The player of a step that has run; `folds` plays equal iterations of loops once.

    By "critical-path" no two iterations are equal, as less remains after the later one: all are played.

    Raises InvalidArgumentError for a step that cannot go on, for a name that no node has, and for an order that the
    members of a group of collectives do not share.
    """
    if order == "ready":
        return _played(script, planner, None, folds=folds)
    if isinstance(order, str):
        player = _ordered(script, planner, lambda shared: CriticalPath(script, shared.plan_of), folds=False)
    else:
        given = GivenPriorities(order, script)
        player = _ordered(script, planner, lambda _: given, folds=folds)
        check_agreement(player)
    check_counted(player, partial(_played, script, planner, lambda _: GivenPriorities({}, script), folds=False))
    return player


def _ordered(script: Script, planner: Planner, ordered_by: _OrderedBy, *, folds: bool) -> Player:
    """Plays by priority; an error that "ready" does not lead to says so.

    An order leads to one if it joins members of collectives that a communicator counts, and these do not agree.
    """
    try:
        return _played(script, planner, ordered_by, folds=folds)
    except InvalidArgumentError as error:
        _played(script, planner, None, folds=True)
        raise InvalidArgumentError(
            f'order: the step goes on by "ready", but not in this order: {error.message}', node=error.node, op=error.op
        ) from error


def _played(script: Script, planner: Planner, ordered_by: _OrderedBy | None, *, folds: bool) -> Player:
    shared = SharedHardware(
        planner.cluster, planner.calibration, representatives=planner.representatives, ordered_by=ordered_by
    )
    player = Player(shared, ModelOracle(), folds=folds)
    player.play(script)
    return player
