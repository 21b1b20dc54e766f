"""Traced steps: which steps are traced for cost models, and the StepStats of a traced step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from time import perf_counter_ns, time_ns
from typing import TYPE_CHECKING

from ...graph import StepStats
from ...graph.tasks import task_of
from ...rendezvous import Key
from .. import running

if TYPE_CHECKING:
    from ...graph import GraphOptions
    from ...rendezvous import TracedRendezvous
    from ..running.part import Part
    from .requests import RequestNames


class CostSteps:
    """Chooses the steps to trace for `build_cost_model` and `build_cost_model_after` of a session's options."""

    def __init__(self, options: GraphOptions, *, distributed: bool = False) -> None:
        """`distributed` says that the session is over several tasks, which choose other steps: see `begin`."""
        self.are_wanted = options.build_cost_model > 0
        self._every = options.build_cost_model
        self._after = options.build_cost_model_after
        self._distributed = distributed
        self._begun: Counter[tuple[tuple[str, ...], ...]] = Counter()

    def begin(self, signature: RequestNames) -> bool:
        """Counts a step of a request and says whether to trace it; the order of names in a request does not matter.

        Local sessions trace the steps `after + every`, `after + 2 every`, ... of a request. Sessions over several tasks
        trace every step `k` from 1 for which `k - after` is a multiple of `every`, also below `after`.
        """
        if not self.are_wanted:
            return False
        request = tuple(tuple(sorted(names)) for names in signature[:3])
        self._begun[request] += 1
        measured = self._begun[request] - self._after
        return measured % self._every == 0 and (measured > 0 or self._distributed)


def statistics_of(parts: Sequence[Part], rendezvous: TracedRendezvous) -> StepStats:
    """The times of the nodes of a traced step and, as "RecvTensor", of the tensors received from other tasks."""
    stats = running.step_stats(parts)
    add_transfers(stats, rendezvous, lambda key: task_of(key.src_device) != task_of(key.dst_device))
    return stats


def add_transfers(stats: StepStats, rendezvous: TracedRendezvous, is_shown: Callable[[Key], bool]) -> None:
    """Adds the receives whose key `is_shown` to their devices, as "RecvTensor"."""
    devices = {device.device: device for device in stats.dev_stats}
    wall_offset_ns = time_ns() - perf_counter_ns()
    for transfer in rendezvous.transfers():
        key = Key.parse(transfer.key)
        if key.dst_device not in devices or not is_shown(key):
            continue
        received = devices[key.dst_device].node_stats.add(
            node_name="RecvTensor",
            timeline_label=f"[{transfer.num_bytes}B] {key.edge_name} from {key.src_device} to {key.dst_device}",
        )
        running.set_times(received, transfer.asked_ns + wall_offset_ns, transfer.received_ns - transfer.asked_ns)
