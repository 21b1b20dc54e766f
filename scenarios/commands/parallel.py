"""Applies `--recompute`, `--pipeline` and `--replicate` to the graph of a request, in this order, before anything else.

What the commands print, cut, run and time is the rewritten graph. Calls of functions are inlined first, because the
training step of a SavedModel is one call. Names are those of the graph or of the signature:

    --batch x --loss loss      x is the tensor serving_default_x:0, loss is StatefulPartitionedCall:1, whose value comes
                               from StatefulPartitionedCall/mean:0 after inlining

Device k of replica r is number r * stages + k of the cluster's accelerators, or of its CPUs if it has no accelerator.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from ...devices import Cluster, local_cluster
from ...graph import Graph, lower_functional
from ...graph.device_name import find_full_name
from ...graph.formats.saved_model import Signature
from ...graph.node import Node
from ...graph.ops.device_kinds import CPU, device_kind
from ...graph.parallel.devices_of_nodes import direct_handles, follow_groups, follow_variables
from ...graph.suggestions import suggestion
from ...graph.tensor_id import TensorId, parse_tensor_name
from ..parallel_options import ParallelOptions, flag_of
from .failure import ConfigurationError, configuring

POLICIES = ("full", "products")
_NEEDED = {
    "replicate": ("batch", "loss"),
    "pipeline": ("batch", "loss", "microbatches"),
    "recompute": ("loss",),
}
_OF = {
    "replicate": ("mean", "concat", "parameters", "zero", "zero_group", "units", "bucket_bytes"),
    "pipeline": ("microbatches", "schedule", "interleave"),
    "recompute": ("segments",),
}
_OF_SEVERAL = {
    "batch": ("replicate", "pipeline", "recompute"),  # without replicas and stages it says nothing, and does no harm
    "loss": ("replicate", "pipeline", "recompute"),
    "reduction": ("replicate", "pipeline"),
    "batch_statistics": ("replicate", "pipeline"),
}


def check_parallel(options: ParallelOptions) -> None:
    """ConfigurationError for a flag without the one that it belongs to, and for a pass without what it needs."""
    for owner, names in _NEEDED.items():
        missing = [name for name in names if getattr(options, name) is None]
        if getattr(options, owner) is not None and missing:
            raise ConfigurationError(f"{flag_of(owner)}: {_flags(missing, 'and')} must be given too")
    owners = {name: (owner,) for owner, names in _OF.items() for name in names} | _OF_SEVERAL
    for name, several in owners.items():
        if getattr(options, name) is not None and all(getattr(options, owner) is None for owner in several):
            raise ConfigurationError(f"{flag_of(name)}: it does nothing without {_flags(several, 'or')}; add one")
    if options.zero_group is not None and not options.zero:
        raise ConfigurationError("--zero-group: nothing is shared; add --zero 1, 2 or 3")


def _flags(names: Sequence[str], word: str) -> str:
    return f" {word} ".join(map(flag_of, names))


def num_devices(options: ParallelOptions) -> int:
    """How many devices the rewritten step runs on."""
    return (options.replicate or 1) * (options.pipeline or 1)


def parallel_devices(cluster: Cluster, options: ParallelOptions) -> list[str]:
    """The full names of those devices; ConfigurationError if there are too few."""
    kinds = {name: find_full_name(name) for name in cluster.names}
    types = {name: kind.type or "" for name, kind in kinds.items() if kind is not None}
    best = next((kind for kind in types.values() if device_kind(kind).own_memory), CPU.name)
    names, wanted = [name for name, kind in types.items() if kind == best], num_devices(options)
    if len(names) < wanted:
        counts = [(flag, n) for flag, n in (("replicate", options.replicate), ("pipeline", options.pipeline)) if n]
        asked = " ".join(f"{flag_of(flag)} {count}" for flag, count in counts)
        raise ConfigurationError(
            f"{asked} needs {wanted} devices, and the cluster has {len(names)} of kind {best}; give more by --devices "
            f'"{best.lower()}:{wanted}" or in the file of --cluster, or fewer by {flag_of(counts[0][0])}'
        )
    return names[:wanted]


def default_cluster(requested: Sequence[str], options: ParallelOptions) -> Cluster:
    """A machine with as many devices as needed: of the first kind of accelerator that nodes request, else CPUs."""
    named = [name for text in requested if (name := find_full_name(text)) is not None and name.type]
    kind = next((name.type for name in named if name.type and device_kind(name.type).own_memory), CPU.name)
    count = num_devices(options)
    return local_cluster(f"cpu:{count}" if kind == CPU.name else f"cpu:1,{kind.lower()}:{count}")


def made_parallel(
    graph: Graph, options: ParallelOptions, cluster: Cluster, signature: Signature | None = None
) -> Graph:
    """The graph after the passes that the flags ask for; ConfigurationError for what they refuse."""
    devices = parallel_devices(cluster, options)
    with configuring():
        graph = _without_calls(graph)
    names = _SignatureNames(graph, signature)
    if options.recompute is not None:
        graph = _recomputed(graph, options, names)
    if options.pipeline is not None:
        graph = _pipelined(graph.copy(), options, names, devices[: options.pipeline])
    if options.replicate is not None:
        graph = _replicated(graph, options, names, devices, cluster)
    follow_variables(graph)
    return graph


def _without_calls(graph: Graph) -> Graph:
    """The graph with calls inlined, whose nodes have dense ids; users of variables read the handles directly."""
    graph = lower_functional(graph, inline_calls=True, control_flow=False).copy()
    direct_handles(graph)
    follow_groups(graph)
    return graph.copy()


class _SignatureNames:
    """Tensors by the names that the user gives: those of a signature, or of the graph."""

    def __init__(self, graph: Graph, signature: Signature | None) -> None:
        self._graph = graph
        self._inputs = {} if signature is None else signature.inputs
        self._outputs = {} if signature is None else signature.outputs

    def inputs(self, text: str | None, flag: str) -> list[str]:
        """The tensors of a list of inputs."""
        return [self._input(name) for name in _listed(text, flag)]

    def outputs(self, text: str | None, flag: str) -> list[str]:
        """The tensors of a list of outputs."""
        return [self._output(name) for name in _listed(text, flag)]

    def loss(self, options: ParallelOptions) -> str:
        """The tensor of the loss."""
        return self._output(options.loss or "")

    def _input(self, name: str) -> str:
        if name in self._inputs:
            return self._inputs[name].tensor
        self._check(name, "an input", self._inputs)
        return name

    def _output(self, name: str) -> str:
        if name in self._outputs:
            return str(_computed(self._graph, self._outputs[name].tensor))
        self._check(name, "an output", self._outputs)
        return name

    def _check(self, name: str, what: str, known: Collection[str]) -> None:
        """ConfigurationError for a name that neither the signature has, if there is one, nor the graph."""
        if known and self._graph.find_node(parse_tensor_name(name).node) is None:
            hint = suggestion(name, known)
            raise ConfigurationError(f"{name!r} is neither {what} of the signature nor a tensor of the graph{hint}")


def _listed(text: str | None, flag: str) -> list[str]:
    names = [name.strip() for name in (text or "").split(",")] if text is not None else []
    if not all(names):
        raise ConfigurationError(f"{flag} {text!r}: an empty name; give names with commas between")
    return names


def _computed(graph: Graph, name: str) -> TensorId:
    """The tensor that an output of an inlined call passes on, which its function computes."""
    tensor = parse_tensor_name(name)
    node = graph.find_node(tensor.node)
    while node is not None and _passes_on(node) and tensor.index < node.num_inputs:
        edge = node.input_edge(tensor.index)
        node, tensor = edge.src, TensorId(edge.src.name, edge.src_output)
    return tensor


def _passes_on(node: Node) -> bool:
    record = node.op_def.record
    return record.regroups or (record.passes_on and record.is_view)


def _recomputed(graph: Graph, options: ParallelOptions, names: _SignatureNames) -> Graph:
    from ...graph import recompute

    text, policy = options.segments, options.recompute or ""
    segments = int(text) if text is not None and text.isdecimal() else _listed(text, "--segments") or None
    kept = policy if policy in POLICIES else _listed(policy, "--recompute")
    with configuring("--recompute"):
        return recompute(graph, loss=names.loss(options), segments=segments, policy=kept)


def _pipelined(graph: Graph, options: ParallelOptions, names: _SignatureNames, devices: Sequence[str]) -> Graph:
    from ...graph import pipeline

    with configuring("--pipeline"):
        return pipeline(
            graph,
            devices,
            batch=names.inputs(options.batch, "--batch"),
            loss=names.loss(options),
            microbatches=options.microbatches or 1,
            **_given(options, "schedule", "interleave", "reduction", "batch_statistics"),
        )


def _replicated(
    graph: Graph, options: ParallelOptions, names: _SignatureNames, devices: Sequence[str], cluster: Cluster
) -> Graph:
    from ...graph import replicate

    with configuring("--parameters"):
        parameters = None if options.parameters is None else cluster.find(options.parameters).name
    units = None if options.units is None else _listed(options.units, "--units")
    with configuring("--replicate"):
        return replicate(
            graph,
            _by_replica(devices, options.pipeline or 1),
            batch=names.inputs(options.batch, "--batch"),
            loss=names.loss(options),
            mean=names.outputs(options.mean, "--mean"),
            concat=names.outputs(options.concat, "--concat"),
            parameters=parameters,
            units=units,
            **_given(options, "reduction", "batch_statistics", "zero", "zero_group", "bucket_bytes"),
        )


def _by_replica(devices: Sequence[str], stages: int) -> list[list[str]]:
    """The devices of each replica, in the order of the names of those of replica 0, which they replace."""
    order = sorted(range(stages), key=devices.__getitem__)
    return [[devices[first + k] for k in order] for first in range(0, len(devices), stages)]


def _given(options: ParallelOptions, *names: str) -> dict[str, Any]:  # Any: flags differ in type
    """Those of the options that are given, so that the others have the default of the pass."""
    return {name: getattr(options, name) for name in names if getattr(options, name) is not None}
