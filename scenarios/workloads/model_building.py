"""How `build_model` makes the graph of a step, from the network of one rank to the graph of all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from math import gcd
from pathlib import Path
from typing import NamedTuple

from ...collector import collector_paused
from ...devices.cluster import Cluster
from ...devices.given_cluster import as_cluster
from ...errors import InvalidArgumentError
from ...graph import Graph
from ...graph.builder.builder import GraphBuilder
from ...graph.builder.handles import Operation, Tensor
from ...graph.gradients.backward import gradients
from ...graph.parallel.devices_of_nodes import host_of
from ...graph.parallel.mesh.exchange_order import order_exchanges
from ...graph.parallel.mesh.mesh import Mesh
from ...graph.parallel.mesh.rank_program import RankProgram
from ...graph.parallel.mesh.reduce_gradients import reduce_gradients
from ...graph.parallel.mesh.write_out import as_representatives, prefix_of, write_out
from ...graph.parallel.pipeline import pipeline
from ...graph.parallel.recompute import recompute
from ..models.description import ModelDescription
from ..models.moe import MoeModel
from ..models.split import Split
from .inference import Inference, StepSizes, check_forward, checked_split, step_sizes
from .local_inputs import with_local_inputs
from .model_step import ModelStep, WeightPlace, names_of_ranks
from .transformers.forward import ForwardEnd, forward
from .transformers.network import RankNetwork, RankSizes
from .transformers.optimizers import OptimizerSettings, WeightUpdates
from .transformers.parameters import RankParameter, RankParameters


@collector_paused()
def build_model(
    model: ModelDescription,
    split: Split,
    devices: Cluster | str | Path,
    *,
    sequence_length: int | None = None,
    training: bool = True,
    inference: Inference | None = None,
    context: int = 0,
    representatives: bool = False,
    local_inputs: bool = False,
    fused: bool = True,
    whole_layers: bool = False,
    imbalance: float = 1.0,
    optimizer: OptimizerSettings | None = None,
) -> ModelStep:
    """The graph of a step of a model, of training or inference, spread over the first devices of a cluster by a split.

    `devices` is a cluster as `simulate` takes it; its GPUs are used in the order of their names, its CPUs if it has
    none. `sequence_length` are tokens of a sequence (of images None: they follow from the model).

    With `inference` nothing is trained. "prefill" computes the `sequence_length` first tokens of each sequence and
    keeps their keys and values, in variables with room for `context` tokens, or for as many as there are; its fetches
    are the logits of the last ones, [sequences of a rank, vocabulary] of each dp rank. "decode" computes one more
    token, whose keys and values are written behind those of earlier ones; on the clock caches of `context` tokens are
    full. Without `training` and `inference` it is the forward pass alone, which keeps nothing, and the logits are those
    of all tokens: that of token p of sequence n in row p * sequences + n. In all of these weights have the type of the
    products.

    With `local_inputs` nothing is fed and fetched: the ranks of each host find their tokens there, and a token that is
    decoded is the last of a full cache. With `representatives`, which have local inputs, one rank of each stage stands
    for all that do the same: `simulate` gives the same times as for the graph of all ranks, and nothing can run it with
    values. Precision "fp8" is for the clock too.

    With `whole_layers` a layer that is computed again is so to its end, which no gradient reads, as frameworks do.
    `fused` False spells attention, norms and the like in TensorFlow's ops. `imbalance` is of the clock, where no
    router decides: how many times the mean of ranks the busiest one's experts have to do. Raises InvalidArgumentError,
    with the nearest values that work, for a split that does not fit the model, the sequence or the devices.
    """
    sizes = step_sizes(model, split, sequence_length, inference, context)
    trains = training and inference is None
    if not trains:
        check_forward(split)
    used, warnings = _used_devices(model, checked_split(split, sizes), devices, sizes.rows)
    ways = _Ways(fused, whole_layers, imbalance, local_inputs or representatives, representatives)
    build = _Building(model, split, used, sizes, ways, trains=trains)
    graph = build.training(optimizer or OptimizerSettings()) if trains else build.forward_only()
    return _of_all_ranks(build, graph, used, warnings)


_SCALE_OF_HALF = 1024.0
"""what losses are multiplied by in float16, so that small gradients are not lost; the same in all steps"""


class _Ways(NamedTuple):
    """How a step is spelled, as `build_model` is given it."""

    fused: bool
    whole_layers: bool
    imbalance: float
    local_inputs: bool
    representatives: bool


def _of_all_ranks(build: _Building, graph: Graph, used: Sequence[str], warnings: tuple[str, ...]) -> ModelStep:
    """The step of all ranks on the `used` devices, of the graph of one of each stage."""
    mesh, ways, inputs, count = build.mesh, build.ways, build.network.inputs, build.split.microbatches
    shapes = {name: (count * given.shape[0], *given.shape[1:]) for name, given in inputs.items()}
    if ways.local_inputs:
        devices_of = {name: host_of(build.devices[given.stage]) for name, given in inputs.items()}
        with_local_inputs(graph, devices_of, count)
    graph = as_representatives(graph, mesh) if ways.representatives else write_out(graph, mesh, used)
    names = {name: names_of_ranks([name], mesh, representatives=ways.representatives) for name in inputs}
    return ModelStep(
        graph=graph,
        feeds={} if ways.local_inputs else {of_rank: shapes[name] for name in names for of_rank in names[name]},
        fetches=() if ways.local_inputs else build.fetches,
        targets=names_of_ranks(build.targets, mesh, representatives=ways.representatives),
        initialise=names_of_ranks(build.initialise, mesh, representatives=ways.representatives),
        tokens=build.tokens,
        split=build.split,
        mesh=mesh,
        sequence_axes={name: given.sequence_axis for name, given in inputs.items()},
        weights=build.weights(graph),
        model=build.model,
        sequence_length=build.sizes.rows,
        trains=build.trains,
        warnings=warnings,
        assumptions=_assumptions(build.model, build.split, ways.imbalance, build.sizes),
    )


_NO_LIMIT = 1 << 30  # calls of stages cannot wait for each other's parameters: these are gathered in front of them
_FLOAT8 = (
    "factors of products with weights are rounded to 8 bits by what makes them, which takes no time; attention, "
    "routers, logits, exchanges and what is kept in memory are in bfloat16"
)


def _assumptions(model: ModelDescription, split: Split, imbalance: float, sizes: StepSizes) -> tuple[str, ...]:
    """What the clock assumes of a step: of types that no kernel computes in, and of experts for want of values."""
    assumed = [_FLOAT8] if split.precision == "fp8" else []
    if isinstance(model, MoeModel) and model.expert_layers:
        share = f"each expert gets tokens * {model.topk} / {model.experts} rows"
        assumed.append(
            f"{share}, those of the busiest rank {imbalance:g} times as many: on the clock no router decides"
        )
    if sizes.decodes:
        assumed.append(f"the cache is full: a token reads all {sizes.cache} rows of it, or those of its window")
    return tuple(assumed)


def _used_devices(
    model: ModelDescription, split: Split, devices: Cluster | str | Path, rows: int
) -> tuple[list[str], tuple[str, ...]]:
    """The devices of the ranks in order, and warnings."""
    cluster = as_cluster(devices)
    warnings = split.check(model, rows, len(cluster.ranked))
    return [device.name for device in cluster.ranked[: split.devices]], warnings


class _Building:
    """The graph of one rank of each stage, through all passes."""

    def __init__(
        self,
        model: ModelDescription,
        split: Split,
        devices: Sequence[str],
        sizes: StepSizes,
        ways: _Ways,
        *,
        trains: bool,
    ) -> None:
        self.model, self.split, self.sizes, self.ways, self.trains = model, split, sizes, ways, trains
        self.mesh = Mesh(pp=split.pp, dp=split.dp, cp=split.cp, tp=split.tp, ep=split.ep)
        self.devices = [devices[stage * self.mesh.per_stage] for stage in range(split.pp)]
        self.tokens = split.global_batch * sizes.rows
        self.scale = (_SCALE_OF_HALF if split.precision == "float16" else 1.0) / (split.microbatch * sizes.rows)
        self.b = GraphBuilder()
        self.program = RankProgram(self.b, self.mesh, split.microbatches)
        self.parameters = RankParameters(
            self.program, split.precision, starts=not ways.representatives, has_masters=trains
        )
        rank_sizes = RankSizes(
            model.layers,
            split.microbatch,
            sizes.rows,
            tuple(self.devices),
            ways.fused,
            ways.imbalance,
            sizes.cache,
            is_full=ways.local_inputs,
        )
        self.network = RankNetwork(self.program, self.parameters, split, rank_sizes)
        self.fetches: tuple[str, ...] = ()
        self.targets: list[str] = []
        self.initialise: list[str] = []

    def forward_only(self) -> Graph:
        """The logits of the batch, and what is written into caches."""
        logits = forward(self.network, self.model).logits().node
        mesh = self.mesh
        first = [rank for rank in range(mesh.per_stage) if mesh.coordinates(rank).tp == 0]
        self.fetches = tuple(f"{prefix_of(rank)}{logits}" for rank in first)
        self.targets.append(logits)
        for stage in range(self.split.pp):
            written = [write for at, write in self.network.writes if at == stage]
            if written:
                self.targets.append(self._group(written, "cached", stage))
        self._start()
        return self.b.graph()

    def training(self, optimizer: OptimizerSettings) -> Graph:
        """The whole step."""
        end = forward(self.network, self.model)
        part, count = self._loss(end)
        reads = [parameter.read for parameter in self.parameters.all]
        slopes = [self.b.tensor(slope) for slope in gradients(self.b, [part], reads)]
        correction = self._correction(count)
        self._total(part, correction)
        updates = WeightUpdates(self.program, self.parameters, optimizer, self.devices).add(slopes, correction)
        for stage, of_stage in enumerate(updates):
            self.targets.append(self._group(of_stage, "train", stage))
        self._start()
        by_variable = {p.handle.node: slope.name for p, slope in zip(self.parameters.all, slopes, strict=True)}
        return self._passed(self.b.graph(), part.name, by_variable, count.name)

    def weights(self, graph: Graph) -> dict[str, WeightPlace]:
        """Where the parts of weights are, behind all passes."""
        places = {}
        for p in self.parameters.all:
            handle = graph.find_node(p.handle.node)
            assert handle is not None  # no pass removes a variable that is trained
            is_whole = tuple(handle.attrs["shape"]) == p.part
            along = "" if is_whole else self._sharded_over(p)
            places[p.name] = WeightPlace(p.read.name, p.stage, p.axis, p.over, p.part, along)
        return places

    def _sharded_over(self, parameter: RankParameter) -> str:
        axis = "edp" if parameter.over == "ep" else "dp"
        size = self.mesh.size(axis)
        group = size if self.split.zero_group is None else gcd(self.split.zero_group, size)
        return axis if group == size else f"{axis}:{group}"

    def _group(self, nodes: Sequence[Operation], name: str, stage: int) -> str:
        name = name if stage == 0 else f"{name}/stage_{stage}"
        return self.b.group(*nodes, name=name, device=self.devices[stage]).name

    def _start(self) -> None:
        for stage in range(self.split.pp):
            mine = [assignment for at, assignment in self.parameters.assignments if at == stage]
            if mine:
                self.initialise.append(self._group(mine, "initialise", stage))

    def _loss(self, end: ForwardEnd) -> tuple[Tensor, Tensor]:
        """The sum of the rank's losses times the scale of gradients, and how many tokens have a label."""
        total, count = end.losses()
        with self._on_last():
            return self.b.op("Mul", total, self.scale, name="loss/of_rank")[0], count

    def _correction(self, count: Tensor) -> Tensor:
        """What makes of a sum of scaled losses, or gradients, the mean over the labelled tokens of the global batch."""
        with self._on_last(), self.b.scope("correction"):
            labelled = self.program.all_reduce(count, "dp+cp", name="labelled")
            at_least_one = self.b.op("Maximum", labelled, 1.0)
            return self.b.op("RealDiv", 1 / self.scale, at_least_one, name="factor")[0]

    def _total(self, part: Tensor, correction: Tensor) -> None:
        """The loss of the global batch, on the last stage of every rank."""
        with self._on_last():
            whole = self.program.all_reduce(part, "dp+cp", name="correction/loss")
            loss = self.b.op("Mul", whole, correction, name="loss").name
        self.fetches = (loss,)
        self.targets.append(loss)

    def _on_last(self) -> AbstractContextManager[None]:
        """Makes nodes on the last stage."""
        return self.program.on_stage(self.split.pp - 1, self.devices[-1])

    # Passes

    def _passed(self, graph: Graph, loss: str, slopes: Mapping[str, str], count: str) -> Graph:
        """The graph behind all passes.

        `loss` is that of the rank, `slopes` are its gradients by variable, `count` is how many labels count.
        """
        split, inputs = self.split, list(self.network.inputs)
        layers = [f"layer_{number}" for number in range(self.model.layers)]
        if split.recompute == "selective":
            if "heads" not in self.model.cut_by_tensor_parallel:
                raise InvalidArgumentError(
                    f'recompute="selective" computes attention again, which {type(self.model).__name__} has not; use '
                    '"none", "full" or "products"'
                )
            graph = recompute(graph, loss=loss, segments=[f"{layer}/attention/core" for layer in layers])
        elif split.recompute != "none":
            graph = recompute(graph, loss=loss, segments=layers, policy=split.recompute, whole=self.ways.whole_layers)
        ends, is_called = [*slopes.values(), loss, count], split.pp > 1 or split.microbatches > 1
        hides_sums = "dp" in split.overlap
        if hides_sums:
            order_exchanges(graph, ends=ends, gradients=ends, loss=loss, batch=inputs, hidden=split.overlap)
        graph = reduce_gradients(
            graph,
            self.mesh,
            self.devices,
            slopes,
            batch=inputs,
            loss=loss,
            others=[count],
            zero=split.zero if self.mesh.dp > 1 else 0,
            zero_group=split.zero_group if self.mesh.dp > 1 else None,
            prefetch=_NO_LIMIT if is_called else int(hides_sums),
        )
        if not hides_sums:
            order_exchanges(
                graph,
                ends=self.targets,
                gradients=ends,
                loss=loss,
                free=self.initialise,
                batch=inputs if is_called else None,
                hidden=split.overlap,
            )
        if not is_called:
            return graph
        return pipeline(
            graph,
            self._stages(layers),
            batch=inputs,
            loss=loss,
            microbatches=split.microbatches,
            schedule=split.schedule,
            reduction="sum",
            sized="microbatch",
            gradients=slopes,
            others=[count],
            inline_last=hides_sums and self.mesh.size("dp+cp") > 1,
        )

    def _stages(self, layers: Sequence[str]) -> dict[str, str]:
        """The device of each scope of the forward pass, in order."""
        counts = self.split.stages_of(self.model.layers)
        of_layers = [self.devices[k % self.split.pp] for k, count in enumerate(counts) for _ in range(count)]
        first, last = self.devices[0], self.devices[-1]
        return {"embedding": first, **dict(zip(layers, of_layers, strict=True)), "head": last, "loss": last}
