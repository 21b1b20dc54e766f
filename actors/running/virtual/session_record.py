"""The timeline of a session on a virtual clock, from the records of its steps.

Steps that were under way together share hardware and its log; when none is under way, the next gets new hardware:

    hardware 1, from 0 ns on         steps 1 and 2
    hardware 2, from 900 ns on       step 3
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from ....devices.timing.events import Events
from ....devices.timing.hardware.log import KINDS, Log
from ....devices.timing.joined_events import joined_events
from ....devices.timing.link_use import LinkUse
from ....devices.timing.playing.ran import Entries, ran_steps
from ....devices.timing.playing.recording import events_of
from ....devices.timing.session_timeline import SessionTimeline
from ....devices.timing.simulate import spec_assumptions, spec_warnings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ....devices.timing.link_use import LinkLoad
    from ....devices.timing.playing.activation import Activation
    from .clock import VirtualClock
    from .record import StepRecord


def session_timeline(clock: VirtualClock, records: Sequence[StepRecord]) -> SessionTimeline:
    """All steps of a session until now. Raises InvalidArgumentError where they took no simulated time."""
    shared = [list(group) for _, group in groupby(records, lambda record: id(record.shared))]
    ran = [group for group in shared if any(record.activations for record in group)]
    parts = [(group[0].past_ns, _events(group, clock.cluster.names)) for group in ran]
    events = joined_events(parts) if parts else Events.of([])
    used, cluster = events.device.first_seen(), clock.cluster

    def loads(link: str) -> list[LinkLoad]:
        return [
            (group[0].past_ns + start, group[0].past_ns + end, load)
            for group in shared
            for start, end, load in group[0].shared.engine.network.loads(link)
        ]

    return SessionTimeline(
        events,
        [record.span for record in records],
        clock.now_ns,
        warnings=spec_warnings(used, cluster),
        assumed=spec_assumptions(used, cluster),
        dependency_bound_ns=lambda: max((r.longest_chain_ns() for r in records if r.state == "done"), default=0),
        cluster=cluster,
        link_use=LinkUse(cluster.topology.links, loads),
    )


def _events(group: Sequence[StepRecord], devices: Sequence[str]) -> Events:
    """The events of steps that shared hardware, from 0 on."""
    owned = [(activation, record) for record in group for activation in record.activations]
    owned.sort(key=lambda pair: pair[0].base)
    activations = [activation for activation, _ in owned]
    failed_at = [record.end_entry if record.state == "failed" else -1 for _, record in owned]
    log = _log_until_now(group[0], activations, failed_at)
    ran = ran_steps(activations, Entries(log, 0, len(log), 0))
    events = events_of(ran, devices)
    events.step = np.array([record.number for _, record in owned], np.int64)[events.iteration.numbers]
    return events


def _log_until_now(record: StepRecord, activations: Sequence[Activation], failed_at: Sequence[int]) -> Log:
    """The log of hardware as far as it came.

    What is under way ends now, and what has not begun is left out; so is what a failed step would have done without
    taking time: `failed_at` is by activation the entry at which its step failed, -1 of others.
    """
    engine, source = record.shared.engine, record.shared.log
    now = engine.now()
    entries, start_ns, end_ns = (
        np.array(column, np.int64) for column in (source.entries, source.start_ns, source.end_ns)
    )
    end_ns[engine.unfinished()] = now
    owner = np.searchsorted(np.array([a.base for a in activations], np.int64), entries // KINDS, "right") - 1
    failed = np.array(failed_at, np.int64)[owner]
    is_left = (failed >= 0) & (np.arange(len(entries)) >= failed) & (end_ns <= start_ns)
    entries[((start_ns >= now) & (end_ns > now)) | is_left] = -1
    log = Log()
    for column, values in (
        (log.entries, entries),
        (log.causes, np.array(source.causes, np.int64)),
        (log.start_ns, start_ns),
        (log.end_ns, np.minimum(end_ns, now)),
    ):
        column.frombytes(values.tobytes())
    log.lanes, log.bottlenecks, log.collectives = source.lanes, source.bottlenecks, source.collectives
    return log
