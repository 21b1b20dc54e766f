"""ZeRO and FSDP: replicas share out what each of them would have, optimizer state, gradients and parameters.

    stage   each replica has                                       collectives per step
    1       whole parameters and gradients, shards of the state    reduce-scatter of gradients, all-gather of parameters
    2       whole parameters, shards of gradients and state        the same; a bucket of gradients is freed at once
    3       shards of everything                                   all-gather per unit and pass, reduce-scatter per unit

The stages are those of the ZeRO paper (Rajbhandari et al. 2020), stage 3 is PyTorch's FSDP. With groups smaller than
the number of replicas shards lie inside groups, and gradients are also reduced between them (hybrid sharding).

The step of one device is rewritten once, for the replica with rank 0. Nodes and edges are the same on all replicas;
attrs that differ are listed as patches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from ....errors import InvalidArgumentError
from ...builder.handles import Tensor
from ...dtypes import DataType, base_type, item_size
from ...edge_ends import Output
from ..training_step import TrainingStep
from ..value_flow import ValueFlow
from .collectives import GroupKeys, ShardCollectives
from .edits import Edits
from .gathers import ParameterGathers
from .layout import Patch, Sharding
from .outside import OutsideRead, outside_reads
from .readers import ParameterReaders
from .region import ShardRegion, SharedOut
from .shards import Shards
from .state import StateShards, assignment
from .units import buckets, unit_names
from .updates import UpdateRewriter
from .variables import ShardedVariable

MakesCollectives = Callable[[Edits, Sharding, GroupKeys], ShardCollectives]


@dataclass(frozen=True, slots=True)
class ZeroOptions:
    """What is sharded, and how.

    `stage` 1 to 3; `group` is the size of groups, None for one of all replicas; `units` are name scopes of parameters
    that are gathered together (stage 3), None for the first level on which names differ; `prefetch` is how many units
    ahead a gather may run; `bucket_bytes` bounds what other collectives carry.
    """

    stage: int
    group: int | None = None
    units: Sequence[str] | None = None
    prefetch: int = 1
    bucket_bytes: int = 26_214_400

    def __post_init__(self) -> None:
        if self.stage not in (1, 2, 3):
            raise InvalidArgumentError(f"zero={self.stage}: there are stages 1, 2 and 3, and 0 for none; choose one")
        if self.prefetch < 0:
            raise InvalidArgumentError(f"prefetch={self.prefetch} must be at least 0 units")
        if self.units is not None and self.stage < 3:
            raise InvalidArgumentError(f"zero={self.stage} gathers no units; give units with zero=3 only")


def zero_options(
    zero: int,
    zero_group: int | None,
    units: Sequence[str] | None,
    prefetch: int,
    bucket_bytes: int,
    parameters: str | None,
) -> ZeroOptions | None:
    """What arguments of `replicate` ask for; None without sharding. InvalidArgumentError for what does not fit."""
    if zero == 0:
        if zero_group is not None or units is not None:
            raise InvalidArgumentError("zero_group and units are for sharded steps; give zero=1, 2 or 3 with them")
        return None
    if parameters is not None:
        raise InvalidArgumentError(f"zero={zero} shards variables over replicas; leave out parameters={parameters!r}")
    return ZeroOptions(zero, zero_group, units, prefetch, bucket_bytes)


@dataclass(frozen=True, slots=True)
class ShardedStep:
    """The step of the replica with rank 0, and how others differ.

    The gradients of `step` are those that are still to be reduced. `variables` are the names of what is sharded,
    `whole` says why others that are updated are not. `own` are nodes that every replica needs although no step does.
    `collectives` are new ones, whose group keys are those of replica 0, up to `last_group` elsewhere.
    """

    step: TrainingStep
    sharding: Sharding
    variables: tuple[str, ...]
    whole: Mapping[str, str]
    patches: tuple[Patch, ...]
    outside: tuple[OutsideRead, ...]
    own: frozenset[int]
    collectives: frozenset[int]
    last_group: int


def shard_step(
    step: TrainingStep,
    sharding: Sharding,
    options: ZeroOptions,
    keys: GroupKeys,
    *,
    mean: bool = True,
    outputs: Sequence[int] = (),
    among: SharedOut | None = None,
    collectives: MakesCollectives = ShardCollectives,
) -> ShardedStep:
    """Shards a training step over replicas; `mean` says whether gradients are averaged or summed.

    `outputs` are further nodes that every replica computes, `among` what is sharded, if not all;
    `collectives` makes what shards and wholes travel by. Parameters whose updates are not elementwise, or change
    rows only, stay whole with their state, as do variables of one element. Raises InvalidArgumentError if nothing is
    left to shard, and for units without parameters.
    """
    edits = Edits(step.graph)
    return _Sharder(step, edits, collectives(edits, sharding, keys), options, outputs, among, mean=mean).run()


class _Sharder:
    """The rewriting of one step."""

    def __init__(
        self,
        step: TrainingStep,
        edits: Edits,
        collectives: ShardCollectives,
        options: ZeroOptions,
        outputs: Sequence[int],
        among: SharedOut | None,
        *,
        mean: bool,
    ) -> None:
        self._step, self._edits, self._collectives = step, edits, collectives
        self._options = options
        self._mean = mean
        added = [gradient for gradient in step.gradients if gradient not in step.joined]
        shapes = step.shapes.declared
        self._region = ShardRegion(step.flow, shapes, step.updates, added, step.loss[0], outputs, among)
        if not self._region.variables:
            why = "; ".join(f"{name!r}: {reason}" for name, reason in [*self._region.whole.items()][:3])
            raise InvalidArgumentError(
                f"zero={options.stage}: no variable of this step can be sharded ({why}); use zero=0"
            )
        self._state = StateShards(
            self._region, self._edits, self._collectives, keeps_parameters=options.stage < _PARAMETERS
        )
        forward = step.flow.reached([step.loss[0], *outputs], self._region.earlier) & self._region.before
        self._readers = ParameterReaders(self._region, forward=forward, dependent=step.dependent)
        self._gathers = ParameterGathers(self._region, self._edits, self._collectives, self._state, self._readers)
        self._shards = Shards(self._region, self._edits, self._collectives, self._state.handles, self._value_shard)
        self._updates = UpdateRewriter(self._shards, self._state)
        parameters = [v for v in self._region.variables.values() if v.is_parameter]
        names = unit_names([v.name for v in parameters], options.units) if options.stage == _PARAMETERS else []
        self._units: dict[str, list[ShardedVariable]] = {}
        for variable, name in zip(parameters, names, strict=False):
            self._units.setdefault(name, []).append(variable)

    def run(self) -> ShardedStep:
        """The sharded step."""
        region = self._region
        for variable in region.variables.values():
            self._state.rewrite(variable)
        self._scatter()
        self._updates.rewrite()
        if self._options.stage == _PARAMETERS:
            self._gathers.add(self._units, self._options.prefetch)
        else:
            self._gather_updated()
        outside = outside_reads(self._shards, self._state, self._readers)
        graph = self._edits.finish()
        seeds = set(region.seeds)
        step = replace(
            self._step,
            graph=graph,
            flow=ValueFlow(graph),
            gradients=tuple(gradient for gradient in self._step.gradients if gradient not in seeds),
        )
        return ShardedStep(
            step,
            self._collectives.sharding,
            tuple(variable.name for variable in region.variables.values()),
            region.whole,
            tuple(self._collectives.patches),
            tuple(outside),
            self._own(step.flow, [*self._state.initial, *(read.tensor.rpartition(":")[0] for read in outside)]),
            frozenset(map(self._edits.make.id_of, self._collectives.nodes)),
            self._collectives.last_group,
        )

    def _own(self, flow: ValueFlow, names: Sequence[str]) -> frozenset[int]:
        """Some nodes, with new ones that they depend on."""
        found = {self._edits.make.id_of(name) for name in names}
        stack = list(found)
        while stack:
            for source, _ in flow.sources[stack.pop()]:
                if source >= self._step.graph.num_node_ids and source not in found:
                    found.add(source)
                    stack.append(source)
        return frozenset(found)

    def _value_shard(self, variable: ShardedVariable) -> Tensor | None:
        return None if self._state.is_beside(variable) else self._gathers.value(variable)

    # Gradients

    def _scatter(self) -> None:
        """Reduces gradients to shards: per bucket, or per unit."""
        buffers = []
        for number, seeds in enumerate(self._gradient_buckets()):
            cuts = [self._collectives.cut(self._shards.shape(seed)) for seed in seeds]
            wholes = [self._edits.tensor(seed) for seed in seeds]
            name = f"zero/gradients_{number}"
            with self._edits.beside(seeds[0][0]):
                shards = self._collectives.scatter(wholes, cuts, name, mean=self._mean)
            self._shards.of_gradient.update(zip(seeds, shards.pieces, strict=True))
            buffers.append(shards.buffer)
        if self._options.stage == 1:
            self._keep(buffers)

    def _gradient_buckets(self) -> list[list[Output]]:
        """Gradients that travel together, in the order of the backward pass."""
        seeds = self._region.seeds
        if self._options.stage < _PARAMETERS:
            return buckets(seeds, self._sort, self._bytes, self._options.bucket_bytes)
        unit_of = {v.node: unit for unit, variables in self._units.items() for v in variables}
        by_unit: dict[tuple[str, tuple[DataType, str]], list[Output]] = {}
        for seed in seeds:
            variable = self._region.target(seed)
            unit = unit_of.get(variable.node, "") if variable is not None else ""
            by_unit.setdefault((unit, self._sort(seed)), []).append(seed)
        return list(by_unit.values())

    def _dtype(self, output: Output) -> DataType:
        return base_type(self._region.kind(output[0]).output_types[output[1]])

    def _sort(self, output: Output) -> tuple[DataType, str]:
        """What tensors of one collective have in common: element type and device."""
        return self._dtype(output), self._step.graph.requested_device(output[0])

    def _bytes(self, output: Output) -> int:
        return prod(self._shards.shape(output)) * item_size(self._dtype(output))

    def _keep(self, buffers: Sequence[Tensor]) -> None:
        """Stage 1: whole gradients stay until the backward pass has ended, as in a buffer that all of them share.

        Each device keeps its own.
        """
        graph = self._step.graph
        by_device: dict[str, list[Tensor]] = {}
        for seeds, buffer in zip(self._gradient_buckets(), buffers, strict=True):
            by_device.setdefault(graph.requested_device(seeds[0][0]), []).append(buffer)
        for device, kept in by_device.items():
            producers = [node for node, _ in self._region.seeds if graph.requested_device(node) == device]
            with self._edits.make.within(None, device):
                self._keep_on(device, kept, list(dict.fromkeys(map(graph.node_name, producers))))

    def _keep_on(self, device: str, buffers: Sequence[Tensor], producers: Sequence[str]) -> None:
        """What `_keep` says for the gradients of one device."""
        make = self._edits.make
        ended = make.op("NoOp", name="zero/gradients/ended", control=producers)
        kept = [make.op("Shape", buffer, name="zero/gradients/kept", control=[ended]) for buffer in buffers]
        until = make.op("NoOp", name="zero/gradients/kept_until", control=kept)
        for update in self._region.updates:
            is_here = self._step.graph.requested_device(update) == device
            if is_here and self._region.variable_of(update) is not None:
                self._edits.wait(until.name, self._updates.end_of(update))

    # Parameters that stay whole

    def _gather_updated(self) -> None:
        """Stages 1 and 2: what was updated as shards is gathered, and assigned to the whole parameters."""
        beside = [v for v in self._region.variables.values() if self._state.is_beside(v)]
        position = self._step.flow.position
        beside.sort(key=lambda v: position[v.updates[-1]])
        most = self._options.bucket_bytes
        for number, some in enumerate(
            buckets(beside, self._sort_of, lambda v: prod(v.shape) * item_size(v.dtype), most)
        ):
            shards = [self._updated(variable) for variable in some]
            cuts = [self._collectives.cut(variable.shape) for variable in some]
            with self._edits.beside(some[0].node):
                wholes, _ = self._collectives.gather(shards, cuts, f"zero/parameters_{number}")
            for variable, whole in zip(some, wholes, strict=True):
                op, attrs = assignment(variable)
                handle = self._edits.tensor((variable.node, 0))
                self._edits.become(variable.updates[-1], op, handle, whole, **attrs)

    def _sort_of(self, variable: ShardedVariable) -> tuple[DataType, str]:
        return variable.dtype, self._step.graph.requested_device(variable.node)

    def _updated(self, variable: ShardedVariable) -> Tensor:
        """The shard of a parameter behind its last update."""
        with self._edits.beside(variable.node):
            value = self._state.read(self._state.handles[variable.node], variable, f"zero/{variable.name}/after")
        for update in variable.updates:
            self._edits.wait(self._updates.end_of(update), value.node)
        return value


_PARAMETERS = 3
"""the stage from which on parameters are shards"""
