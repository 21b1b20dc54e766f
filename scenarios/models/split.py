"""How a model is spread over devices: one frozen description that builders, checks and the command line read.

    split = Split(tp=8, pp=4, dp=2, microbatches=16)
    split.devices          64: tp * pp * cp * dp
    split.global_batch     32: dp * microbatch * microbatches, in sequences
    split.stages_of(80)    (20, 20, 20, 20): the layers of each stage

Ranks are numbered ((pp * DP + dp) * CP + cp) * TP + tp, so that tensor-parallel ranks are neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Literal, Self, TypeAlias, get_args

from ...errors import InvalidArgumentError, UnimplementedError
from ...graph.parallel.mesh.mesh import Mesh
from ...graph.parallel.pipelines.schedules import PipelineShape, find_schedule
from ...graph.suggestions import suggestion
from .nearest import nearest_divisors, nearest_multiples, or_text
from .split_checks import check_fits
from .split_text import split_fields, usual_schedule
from .stage_cut import even_stages

if TYPE_CHECKING:
    from .description import ModelDescription

ContextKind: TypeAlias = Literal["heads", "ring"]
"""how attention sees the whole sequence: heads are exchanged for rows, or keys and values go round"""
Recomputation: TypeAlias = Literal["none", "selective", "full", "products"]
"""what the backward pass computes again"""
Precision: TypeAlias = Literal["float32", "bfloat16", "float16", "fp8", "float64"]
"""the type of products and activations"""
OVERLAPS = ("tp", "dp", "pp", "ep", "cp")
"""the axes whose communication may hide behind computation"""

_ROUNDS = 4
_COUNTS = ("dp", "tp", "pp", "cp", "ep", "microbatch", "microbatches", "interleave", "zero_group")
_CHOICES: dict[str, tuple[object, ...]] = {
    "cp_kind": get_args(ContextKind),
    "recompute": get_args(Recomputation),
    "precision": get_args(Precision),
    "zero": (0, 1, 2, 3),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """The degrees of parallelism of a step, and how its micro-batches run.

    dp, tp, pp, cp   data, tensor, pipeline and context parallel ranks; a step runs on dp * tp * pp * cp devices
    cp_kind          "heads": all-to-all of heads against rows; "ring": keys and values go round, causal halves balanced
    ep               expert parallel ranks, a divisor of dp: neighbours of dp share out the experts; tp cuts none
    microbatch       sequences of a micro-batch on one dp rank
    microbatches     micro-batches of a step on one dp rank; with pp = 1 their gradients are accumulated
    interleave       stages per pipeline rank
    schedule         the pipeline's order of calls, a registered name; left out "1f1b", or "interleaved" with interleave
    stages           layers of each of the pp * interleave stages, in order; left out they are equal
    sequence_parallel  norms and residuals on 1 / tp of the rows: reduce-scatter and all-gather in place of all-reduce
    zero             0: optimizer state on every dp rank; 1 it is sharded, 2 gradients too, 3 parameters too (pp = 1)
    zero_group       dp ranks that share the shards, a divisor of dp; left out all of them
    recompute        "none"; "selective": the attention core; "full": whole layers; "products": all but products
    overlap          axes whose communication may hide behind computation: "tp" (many rows in chunks), "dp", "ep", "cp";
                     that of others keeps to the order of the program. Transfers of stages hide with or without "pp"
    precision        type of products and activations; masters and accumulated gradients are float32. "fp8": products at
                     the fp8 rate, on the clock only. "float64": all of it, to compare values

    Raises InvalidArgumentError, with the nearest values that work, for fields that contradict each other, and
    UnimplementedError for zero=3 over the stages of a pipeline.
    """

    dp: int = 1
    tp: int = 1
    pp: int = 1
    cp: int = 1
    cp_kind: ContextKind = "ring"
    ep: int = 1
    microbatch: int = 1
    microbatches: int = 1
    interleave: int = 1
    schedule: str = ""
    stages: tuple[int, ...] | None = None
    sequence_parallel: bool = False
    zero: int = 0
    zero_group: int | None = None
    recompute: Recomputation = "none"
    overlap: tuple[str, ...] = ()
    precision: Precision = "float32"

    def __post_init__(self) -> None:
        self._check_values()
        if not self.schedule:
            object.__setattr__(self, "schedule", usual_schedule(self.interleave))
        if self.stages is not None:
            object.__setattr__(self, "stages", tuple(self.stages))
        object.__setattr__(self, "overlap", tuple(axis for axis in OVERLAPS if axis in self.overlap))
        self._check_groups()
        self._check_stages()

    @classmethod
    def parse(cls, text: str) -> Self:
        """The split of a text "tp=8,pp=4,dp=2,microbatches=16": fields by name, lists joined by "+".

        A flag may stand alone ("sequence_parallel"). `batch=64` in place of `microbatches` is the global batch. Raises
        InvalidArgumentError for an unknown field, a value of another type, a field given twice, and as the class does.
        """
        given, batch = split_fields(text, {field.name for field in fields(cls)})
        split = cls(**given)
        return split if batch is None else split.of_batch(batch)

    def of_batch(self, batch: int) -> Self:
        """This split with as many micro-batches as make up a global batch of sequences.

        Raises InvalidArgumentError, with the nearest batches, if dp * microbatch does not divide it.
        """
        rows = self.dp * self.microbatch
        if batch < 1 or batch % rows:
            near = or_text(nearest_multiples(batch, rows) or (rows,))
            raise InvalidArgumentError(
                f"batch={batch}: dp * microbatch = {self.dp} * {self.microbatch} = {rows} is no divisor; give {near}"
            )
        return replace(self, microbatches=batch // rows)

    @property
    def devices(self) -> int:
        """The number of devices of a step."""
        return self.dp * self.tp * self.pp * self.cp

    @property
    def mesh(self) -> Mesh:
        """The grid of ranks."""
        return Mesh(pp=self.pp, dp=self.dp, cp=self.cp, tp=self.tp, ep=self.ep)

    @property
    def global_batch(self) -> int:
        """Sequences of a step."""
        return self.dp * self.microbatch * self.microbatches

    def stages_of(self, layers: int) -> tuple[int, ...]:
        """The number of layers of each stage, first to last; stage k is on pipeline rank k modulo pp.

        Raises InvalidArgumentError, with what works, where `layers` cannot be cut equally or `stages` have another sum.
        """
        count = self.pp * self.interleave
        if self.stages is not None:
            if sum(self.stages) != layers:
                raise InvalidArgumentError(
                    f"stages={list(self.stages)} have {sum(self.stages)} layers together, the model has {layers}; "
                    f"give {count} numbers whose sum is {layers}"
                )
            return self.stages
        if layers < count:
            raise InvalidArgumentError(
                f"pp * interleave = {self.pp} * {self.interleave} = {count} are more stages than the {layers} layers; "
                f"give a product of {layers} or less"
            )
        if layers % count:
            near, even = or_text(nearest_divisors(count, layers)), "+".join(map(str, even_stages(layers, count)))
            raise InvalidArgumentError(
                f"pp * interleave = {self.pp} * {self.interleave} = {count} does not divide {layers} layers; give a "
                f"product of {near}, or the layers of each stage: stages={even}"
            )
        return (layers // count,) * count

    def check(
        self, model: ModelDescription, sequence_length: int, devices_available: int | None = None
    ) -> tuple[str, ...]:
        """Whether the model can be split so, for sequences of that many tokens; returns warnings, as sentences.

        Raises InvalidArgumentError, with the nearest values that work, for what does not divide and for more devices
        than `devices_available`; fewer are a warning. UnimplementedError for a ring with a window of attention.
        """
        self.stages_of(model.layers)
        return check_fits(self, model, sequence_length, devices_available)

    def _check_values(self) -> None:
        for name in _COUNTS:
            count = getattr(self, name)
            if count is None and name == "zero_group":
                continue
            if isinstance(count, bool) or not isinstance(count, int) or count < 1:
                raise InvalidArgumentError(f"{name}={count!r} is no positive number; give 1 or more")
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                known = ", ".join(map(str, choices))
                raise InvalidArgumentError(f"{name}={getattr(self, name)!r} is none of {known}")
        for axis in self.overlap:
            if axis not in OVERLAPS:
                raise InvalidArgumentError(f"overlap={axis!r} is no axis{suggestion(axis, OVERLAPS)}")

    def _check_groups(self) -> None:
        for name, size in (("ep", self.ep), ("zero_group", self.zero_group or 1)):
            if self.dp % size:
                near = or_text(nearest_divisors(size, self.dp))
                raise InvalidArgumentError(
                    f"{name}={size} does not divide dp={self.dp}; give {name}={near}, or another dp"
                )
        if self.zero_group is not None and not self.zero:
            raise InvalidArgumentError(f"zero_group={self.zero_group}: nothing is sharded; give zero=1, 2 or 3 too")
        if self.zero == 3 and min(self.pp, self.dp) > 1:
            raise UnimplementedError(
                f"zero=3 shares out parameters, which the stages of a pipeline (pp={self.pp}) need in every call; give "
                "zero=1 or 2, or pp=1"
            )

    def _check_stages(self) -> None:
        schedule = find_schedule(self.schedule)
        if self.interleave > 1 and self.microbatches % self.pp:
            near = or_text(nearest_multiples(self.microbatches, self.pp))
            raise InvalidArgumentError(
                f"interleave={self.interleave}: pp={self.pp} does not divide microbatches={self.microbatches}; "
                f"give microbatches={near}"
            )
        if self.interleave > 1 and self.pp == 1:
            raise InvalidArgumentError(
                f"interleave={self.interleave} needs a pipeline; give pp=2 or more, or interleave=1"
            )
        if self.interleave > 1:  # some rounds say as well whether a schedule has several stages, and are soon in order
            microbatches = min(self.microbatches, _ROUNDS * self.pp)
            schedule.order(PipelineShape(self.pp, self.interleave, microbatches))
        if self.stages is None:
            return
        count = self.pp * self.interleave
        if len(self.stages) != count or min(self.stages) < 1:
            raise InvalidArgumentError(
                f"stages={list(self.stages)} are {len(self.stages)}, pp * interleave is {count}; "
                f"give {count} numbers of layers, each 1 or more"
            )
