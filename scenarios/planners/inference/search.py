"""`search_inference`: the layouts and batches with which a cluster serves a model, by tokens per second.

Memory comes first, of all rows; what fits is timed, its ops priced all at once:

    Llama-3 8B, tp 8    prompt: 2048 tokens of a sequence    19.8 ms, once for all batches
                        token:  batch 1, 64                  4.6, 6.1 ms at 2176 tokens of context
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from attrs import evolve, frozen

from ....devices.cluster import Cluster
from ....devices.timing.costs.fitted import FittedSource
from ....devices.timing.fits.calibration import Calibration
from ....errors import InvalidArgumentError
from ...models.description import ModelDescription
from ...models.split import Precision
from ...models.stage_cut import even_stages
from ..machine import Machine
from ..searching.rules import TOO_LARGE
from .candidates import Candidates, LayoutValues, Rules
from .durations import StageClock
from .memory import HeldBytes, StageBytes, cache_bytes, stage_bytes
from .passages import Passages, ReplicaLayout
from .plan import InferenceEstimate, InferencePlan
from .program import COMPUTE_TYPES
from .rank import Phase, ServedModel, served
from .refusals import nothing_fits, too_slow

_GIB, _MS, _S, _MILLION, _HOUR_S = 1 << 30, 1e6, 1e9, 1e6, 3600


def search_inference(
    model: ModelDescription,
    cluster: Cluster,
    *,
    prompt: int,
    output: int,
    batches: Sequence[int] | None = None,
    tpot_ms: float | None = None,
    split: LayoutValues | None = None,
    top: int = 10,
    precision: Precision = "bfloat16",
    calibration: Calibration | None = None,
    usd_per_hour: float | None = None,
) -> InferencePlan:
    """The plans of a decoder with prompts and answers of so many tokens, those that make the most tokens/s first.

    `batches` are the sequences of a replica to try (None: `BATCHES`). `split` fixes tp, pp or ep to a number or to
    several; what is not fixed is searched. With `tpot_ms` a token of a batch takes at most so many ms. `usd_per_hour`
    is the price of the whole cluster.

    Raises InvalidArgumentError, with the nearest that works, for a model that keeps nothing, lengths beyond its
    positions, layouts that do not divide it, and where no configuration is as fast as `tpot_ms`; for a cluster as
    `Machine.of`. ResourceExhaustedError, with the smallest memory and what would fit, where nothing does.
    """
    checked = served(model, prompt, output)
    machine = Machine.of(cluster, calibration)
    if tpot_ms is not None and not tpot_ms > 0:
        raise InvalidArgumentError(f"tpot_ms={tpot_ms!r} must be above 0: it is the most that a token may take")
    if precision not in COMPUTE_TYPES:
        raise InvalidArgumentError(f"precision={precision!r} is none of {', '.join(COMPUTE_TYPES)}")
    if top < 1:
        raise InvalidArgumentError(f"top={top!r} is no positive number; give 1 or more")
    search = _InferenceSearch(checked, machine, prompt, output, precision, usd_per_hour)
    return search.plan(split or {}, batches, tpot_ms, top)


@frozen(slots=False)
class _InferenceSearch:
    """A model that a machine serves."""

    model: ServedModel
    machine: Machine
    prompt: int
    output: int
    precision: Precision
    usd_per_hour: float | None

    @cached_property
    def passages(self) -> Passages:
        """The times of steps."""
        return Passages(self.model, StageClock(self.machine, FittedSource(self.machine.calibration)), self.precision)

    @property
    def prefill(self) -> Phase:
        """The prompt of one sequence."""
        return Phase("prefill", 1, self.prompt, self.prompt + self.output)

    def decode(self, batch: int) -> Phase:
        """A token of each sequence of a batch."""
        return Phase("decode", batch, 1, self.prompt + self.output // 2)

    def stages(self, layout: ReplicaLayout) -> list[StageBytes]:
        """What the stages of a layout hold."""
        layer = cache_bytes(self.model, layout, self.prompt + self.output, self.precision)
        layers = even_stages(self.model.layers, layout.pp)
        return stage_bytes(self.passages.stages(layout, self.prefill), layers, layer)

    def held(self, layout: ReplicaLayout, batch: int) -> HeldBytes:
        """The memory of the fullest stage with a batch."""
        own = self.passages.stages(layout, self.decode(batch))
        each = zip(self.stages(layout), own, strict=True)
        return max((stage.held(batch, step.activation_bytes) for stage, step in each), key=lambda it: it.allocated)

    def most_batch(self, layout: ReplicaLayout) -> int:
        """The largest batch that fits."""
        limit = self.machine.memory_limit_bytes
        step = layout.tp if self.model.shared_by_expert_parallel else 1
        most = min(stage.most_sequences(limit) for stage in self.stages(layout)) // step
        too_many = bisect_right(range(1, most + 1), limit, key=lambda count: self.held(layout, count * step).allocated)
        return too_many * step

    def plan(
        self, split: LayoutValues, batches: Sequence[int] | None, tpot_ms: float | None, top: int
    ) -> InferencePlan:
        """The plan of layouts with batches."""
        found = Rules(self.model, self.machine, self.prompt).candidates(split, batches)
        impossible = Counter(found.impossible)
        count = len(found.rows) + impossible.total()
        most = {layout: self.most_batch(layout) for layout in dict.fromkeys(layout for layout, _ in found.rows)}
        fitting = [(layout, batch) for layout, batch in found.rows if batch <= most[layout]]
        if not fitting:
            raise nothing_fits(self.model, self.machine, most, self._smallest(found), batches)
        impossible[TOO_LARGE] += len(found.rows) - len(fitting)
        estimates = self._estimates(fitting, most)
        fast = [one for one in estimates if tpot_ms is None or one.decode_ms <= tpot_ms]
        if not fast:
            raise too_slow(estimates, tpot_ms)
        impossible[f"a token takes more than {tpot_ms} ms"] += len(estimates) - len(fast)
        fast.sort(key=lambda one: (-one.tokens_per_s, one.decode_ms, one.tp, one.pp, one.ep))
        return InferencePlan(
            model=self.model,
            machine=self.machine,
            prompt=self.prompt,
            output=self.output,
            configurations=count,
            impossible={reason: number for reason, number in impossible.items() if number},
            assumptions=(*self._assumptions(split), *_without_room(batches, fitting, most)),
            plans=tuple(evolve(one, rank=rank) for rank, one in enumerate(fast[:top], 1)),
        )

    def _assumptions(self, split: LayoutValues) -> Iterator[str]:
        yield from _ASSUMPTIONS
        if "tp" not in split and self.machine.hosts > 1:
            yield f"tp over hosts is left out: it divides the {self.machine.per_host} GPUs of a host"
        if self.model.tied:
            yield (
                "a table that embedding and head share is on the first and on the last stage; the graph that is built "
                "for simulation sends it along in every step"
            )
        yield from self.model.left_out

    def _estimates(
        self, rows: Sequence[tuple[ReplicaLayout, int]], most: Mapping[ReplicaLayout, int]
    ) -> list[InferenceEstimate]:
        """Estimates of rows, whose kernels are priced together."""
        self.passages.learn(
            [
                *dict.fromkeys((layout, self.prefill) for layout, _ in rows),
                *((layout, self.decode(batch)) for layout, batch in rows),
            ]
        )
        return [self._estimate(layout, batch, most[layout]) for layout, batch in rows]

    def _smallest(self, found: Candidates) -> tuple[ReplicaLayout, int, HeldBytes]:
        held = ((layout, batch, self.held(layout, batch)) for layout, batch in found.rows)
        return min(held, key=lambda it: it[2].allocated)

    def _estimate(self, layout: ReplicaLayout, batch: int, most: int) -> InferenceEstimate:
        prompt = self.passages.passage(layout, self.prefill)
        token = self.passages.passage(layout, self.decode(batch))
        held, under_way = self.held(layout, batch), layout.pp * batch
        rounds = [max(total, layout.pp * slowest) for total, slowest in zip(token.total, token.slowest, strict=True)]
        cycle_ns = self.output * rounds[0] + under_way * prompt.slowest.time_ns
        replicas = self.machine.devices // layout.devices * layout.ep
        tokens_per_s = replicas * under_way * self.output * _S / cycle_ns
        cost = None if self.usd_per_hour is None else self.usd_per_hour / _HOUR_S / tokens_per_s * _MILLION
        prefill_ms, decode_ms = ([time_ns / _MS for time_ns in times] for times in (prompt.total, rounds))
        return InferenceEstimate(
            rank=0,
            tp=layout.tp,
            pp=layout.pp,
            ep=layout.ep,
            batch=batch,
            most_batch=most,
            replicas=replicas,
            prefill_ms=prefill_ms[0],
            prefill_ms_low=prefill_ms[1],
            prefill_ms_high=prefill_ms[2],
            decode_ms=decode_ms[0],
            decode_ms_low=decode_ms[1],
            decode_ms_high=decode_ms[2],
            tokens_per_s=tokens_per_s,
            kv_cache_gib=held.cache / _GIB,
            allocated_gib=held.allocated / _GIB,
            memory_limit_gib=self.machine.memory_limit_bytes / _GIB,
            usd_per_million_tokens=cost,
        )


_ASSUMPTIONS = (
    "decode_ms is one token of a batch at the mean context, prompt + output / 2; keys and values are those of "
    "prompt + output tokens",
    "kernels are launched one by one, as the built graph's are: no graph of kernels is recorded and replayed",
    "prompts are computed alone, one of a sequence in between tokens of the others; tokens_per_s counts answers",
    "with pp stages as many batches are under way, one on each stage",
)


def _without_room(
    batches: Sequence[int] | None, fitting: Sequence[tuple[ReplicaLayout, int]], most: Mapping[ReplicaLayout, int]
) -> Iterator[str]:
    """Of batches that a caller asked for and that fit nowhere, the largest that does."""
    fit = {batch for _, batch in fitting}
    layout, largest = max(most.items(), key=lambda it: it[1])
    for batch in batches or ():
        if batch not in fit:
            yield f"batch={batch} fits nowhere: the largest that does is {largest}, with {layout.text}"
