"""How `build_model` makes the graph of a step, from the network of one rank to the graph of all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Literal

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
from ...graph.parallel.mesh.write_out import as_representatives, write_out
from ...graph.parallel.pipeline import pipeline
from ...graph.parallel.recompute import recompute
from ..models.description import ModelDescription
from ..models.moe import MoeModel
from ..models.split import Split
from .local_inputs import with_local_inputs
from .model_step import ModelStep, WeightPlace, names_of_ranks
from .transformers.forward import ForwardEnd, forward
from .transformers.network import RankNetwork, RankSizes
from .transformers.optimizers import Optimizer, Updates
from .transformers.parameters import RankParameter, RankParameters

Inference = Literal["prefill", "decode"]


@collector_paused()
def build_model(
    model: ModelDescription,
    split: Split,
    devices: Cluster | str | Path,
    *,
    sequence_length: int | None = None,
    training: bool = True,
    representatives: bool = False,
    local_inputs: bool = False,
    fused: bool = True,
    imbalance: float = 1.0,
    optimizer: Optimizer | None = None,
) -> ModelStep:
    """The graph of a training step of a model, spread over the first devices of a cluster by a split.

    `devices` is a cluster as `simulate` takes it; its GPUs are used in the order of their names, its CPUs if it has
    none. `sequence_length` are tokens of a sequence (of images None: they follow from the model). Without `training`
    it is the forward pass alone, whose fetch are the logits [tokens of a rank, vocabulary].

    With `local_inputs` nothing is fed and fetched: the ranks of each host find their tokens there. With
    `representatives`, which have local inputs, one rank of each stage stands for all that do the same: `simulate` gives
    the same times as for the graph of all ranks, and nothing can run it with values. Precision "fp8" is for the clock
    too.

    `fused` False spells attention, norms and the like in TensorFlow's ops. `imbalance` is of the clock, where no
    router decides: how many times the mean of ranks the busiest one's experts have to do. Raises InvalidArgumentError,
    with the nearest values that work, for a split that does not fit the model, the sequence or the devices.
    """
    used, warnings = _used_devices(model, split, devices, sequence_length)
    rows = _rows(model, sequence_length)
    build = _Building(model, split, used, rows, fused=fused, imbalance=imbalance, starts=not representatives)
    graph = build.training(optimizer or Optimizer()) if training else build.forward_only()
    mesh, count = build.mesh, split.microbatches
    shapes = {name: (count * given.shape[0], *given.shape[1:]) for name, given in build.network.inputs.items()}
    local_inputs = local_inputs or representatives
    if local_inputs:
        devices_of = {name: host_of(build.devices[given.stage]) for name, given in build.network.inputs.items()}
        with_local_inputs(graph, devices_of, count)
    graph = as_representatives(graph, mesh) if representatives else write_out(graph, mesh, used)
    names = {name: names_of_ranks([name], mesh, representatives=representatives) for name in build.network.inputs}
    return ModelStep(
        graph=graph,
        feeds={} if local_inputs else {of_rank: shapes[name] for name in names for of_rank in names[name]},
        fetches=() if local_inputs else (build.fetch,),
        targets=names_of_ranks(build.targets, mesh, representatives=representatives),
        initialise=names_of_ranks(build.initialise, mesh, representatives=representatives),
        tokens=build.tokens,
        split=split,
        mesh=mesh,
        sequence_axes={name: given.sequence_axis for name, given in build.network.inputs.items()},
        weights=build.weights(graph),
        warnings=warnings,
        assumptions=_assumptions(model, split, imbalance),
    )


_NO_LIMIT = 1 << 30  # calls of stages cannot wait for each other's parameters: these are gathered in front of them
_FLOAT8 = (
    "factors of products with weights are rounded to 8 bits by what makes them, which takes no time; attention, "
    "routers, logits, exchanges and what is kept in memory are in bfloat16"
)


def _assumptions(model: ModelDescription, split: Split, imbalance: float) -> tuple[str, ...]:
    """What the clock assumes of a step: of types that no kernel computes in, and of experts for want of values."""
    assumed = [_FLOAT8] if split.precision == "fp8" else []
    if isinstance(model, MoeModel) and model.expert_layers:
        share = f"each expert gets tokens * {model.topk} / {model.experts} rows"
        assumed.append(
            f"{share}, those of the busiest rank {imbalance:g} times as many: on the clock no router decides"
        )
    return tuple(assumed)


def _rows(model: ModelDescription, sequence_length: int | None) -> int:
    """The tokens of a sequence; InvalidArgumentError if they are neither given nor known."""
    rows = model.rows_of(sequence_length or 1)
    if rows is None:
        return 1
    if sequence_length is None and model.rows_of(1) != model.rows_of(2):
        raise InvalidArgumentError(f"{type(model).__name__} has sequences of any length; give sequence_length")
    return rows


def _used_devices(
    model: ModelDescription, split: Split, devices: Cluster | str | Path, sequence_length: int | None
) -> tuple[list[str], tuple[str, ...]]:
    """The devices of the ranks in order, and warnings."""
    cluster = as_cluster(devices)
    names = [device.name for device in cluster if device.type != "CPU"] or [device.name for device in cluster]
    warnings = split.check(model, _rows(model, sequence_length), len(names))
    return names[: split.devices], warnings


class _Building:
    """The graph of one rank of each stage, through all passes."""

    def __init__(
        self,
        model: ModelDescription,
        split: Split,
        devices: Sequence[str],
        rows: int,
        *,
        fused: bool,
        imbalance: float,
        starts: bool,
    ) -> None:
        self.model, self.split = model, split
        self.mesh = Mesh(pp=split.pp, dp=split.dp, cp=split.cp, tp=split.tp, ep=split.ep)
        self.devices = [devices[stage * self.mesh.per_stage] for stage in range(split.pp)]
        self.tokens = split.global_batch * rows
        self.b = GraphBuilder()
        self.program = RankProgram(self.b, self.mesh, split.microbatches)
        self.parameters = RankParameters(self.program, split.precision, starts=starts)
        sizes = RankSizes(model.layers, split.microbatch, rows, tuple(self.devices), fused, imbalance=imbalance)
        self.network = RankNetwork(self.program, self.parameters, split, sizes)
        self.fetch = ""
        self.targets: list[str] = []
        self.initialise: list[str] = []

    def forward_only(self) -> Graph:
        """The logits of the batch."""
        logits = forward(self.network, self.model).logits()
        self.fetch = logits.node
        self.targets.append(self.fetch)
        self._start()
        return self.b.graph()

    def training(self, optimizer: Optimizer) -> Graph:
        """The whole step."""
        end = forward(self.network, self.model)
        part, count = self._loss(end)
        reads = [parameter.read for parameter in self.parameters.all]
        slopes = [self.b.tensor(slope) for slope in gradients(self.b, [part], reads)]
        correction = self._correction(count)
        self._total(part, correction)
        updates = Updates(self.program, self.parameters, optimizer, self.devices).add(slopes, correction)
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
        if self.split.zero_group not in (None, self.mesh.dp):
            return "ep"  # the only part of dp that ZeRO takes
        return "edp" if parameter.over == "ep" else "dp"

    def _group(self, nodes: Sequence[Operation], name: str, stage: int) -> str:
        name = name if stage == 0 else f"{name}/stage_{stage}"
        return self.b.group(*nodes, name=name, device=self.devices[stage]).name

    def _start(self) -> None:
        for stage in range(self.split.pp):
            mine = [assignment for at, assignment in self.parameters.assignments if at == stage]
            if mine:
                self.initialise.append(self._group(mine, "initialise", stage))

    def _loss(self, end: ForwardEnd) -> tuple[Tensor, Tensor]:
        """The sum of the rank's losses divided by the tokens of the global batch, and how many of them count."""
        total, count = end.losses()
        with self._on_last():
            return self.b.op("Mul", total, 1 / self.tokens, name="loss/of_rank")[0], count

    def _correction(self, count: Tensor) -> Tensor:
        """Tokens of the global batch by those that have a label."""
        with self._on_last(), self.b.scope("correction"):
            labelled = self.program.all_reduce(count, "dp+cp", name="labelled")
            at_least_one = self.b.op("Maximum", labelled, 1.0)
            return self.b.op("RealDiv", float(self.tokens), at_least_one, name="factor")[0]

    def _total(self, part: Tensor, correction: Tensor) -> None:
        """The loss of the global batch, on the last stage of every rank."""
        with self._on_last():
            whole = self.program.all_reduce(part, "dp+cp", name="correction/loss")
            self.fetch = self.b.op("Mul", whole, correction, name="loss").name
        self.targets.append(self.fetch)

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
            graph = recompute(graph, loss=loss, segments=layers, policy=split.recompute)
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
            gradients=[*slopes.values(), count],
            inline_last=hides_sums and self.mesh.size("dp+cp") > 1,
        )

    def _stages(self, layers: Sequence[str]) -> dict[str, str]:
        """The device of each scope of the forward pass, in order."""
        counts = self.split.stages_of(self.model.layers)
        of_layers = [self.devices[k % self.split.pp] for k, count in enumerate(counts) for _ in range(count)]
        first, last = self.devices[0], self.devices[-1]
        return {"embedding": first, **dict(zip(layers, of_layers, strict=True)), "head": last, "loss": last}
