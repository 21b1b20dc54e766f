"""Traced steps of a session: which are, what they run, and what is reported of them.

Flows in: the steps of each request, as they begin, and the parts of those that were traced, when they have ended. Flows
out: statistics and cost graphs in RunMetadata. Always holds: a plan with clocks in it is compiled once a request, when
its first step asks for a trace.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from ...graph.analysis.cost_graph import CostModels
from ..running.trace import step_stats
from .preparation import Prepared, compile_traced

if TYPE_CHECKING:
    from ...graph import GraphOptions, RunMetadata
    from ..plans.plan import Plan
    from ..running.device_actor import DeviceActor
    from ..running.part import Part
    from .requests import Signature


class CostSteps:
    """Chooses the steps that `build_cost_model` and `build_cost_model_after` of a session's options ask for."""

    def __init__(self, options: GraphOptions, *, distributed: bool = False) -> None:
        """With `distributed` steps are chosen as by a session on several tasks, see `begin`."""
        self.are_wanted = options.build_cost_model > 0
        self._every = options.build_cost_model
        self._after = options.build_cost_model_after
        self._distributed = distributed
        self._begun: Counter[tuple[tuple[str, ...], ...]] = Counter()

    def begin(self, signature: Signature) -> bool:
        """Counts a step of a request, in whatever order it names things; whether the step is chosen.

        Local sessions choose the steps `after + every`, `after + 2 every`, ... of a request; sessions on several tasks
        all whose number less `after` is a multiple of `every`, from the first on.
        """
        if not self.are_wanted:
            return False
        request = tuple(tuple(sorted(names)) for names in signature[:3])
        self._begun[request] += 1
        measured = self._begun[request] - self._after
        return measured % self._every == 0 and (measured > 0 or self._distributed)


class SessionTraces:
    """The traced steps of one session."""

    def __init__(self, options: GraphOptions, actors: Mapping[str, DeviceActor]) -> None:
        self.for_costs = CostSteps(options)
        self._actors = actors
        self._work: dict[Signature, Sequence[tuple[Plan, DeviceActor]]] = {}
        self._cost_models = CostModels()

    def work(self, prepared: Prepared) -> Sequence[tuple[Plan, DeviceActor]]:
        """The plans of a request with clocks in them."""
        work = self._work.get(prepared.signature)
        if work is None:
            work = self._work[prepared.signature] = compile_traced(prepared, self._actors)
        return work

    def record(self, parts: Iterable[Part], prepared: Prepared, metadata: RunMetadata, *, with_costs: bool) -> None:
        """Writes what each node of a step took and, `with_costs`, what has been learnt of the request so far."""
        stats = step_stats(parts)
        metadata.step_stats.CopyFrom(stats)
        if with_costs:
            self._cost_models.learn(stats, prepared.optimised)
            self._cost_models.add_all(prepared.optimised.values(), metadata.cost_graph)

    def clear(self) -> None:
        """Forgets all requests; steps go on being counted."""
        self._work.clear()
        self._cost_models = CostModels()
