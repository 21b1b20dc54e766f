"""From the flags that all commands share to a graph, a cluster, feeds, fetches and targets.

    Request (flags) --read--> Inputs (files read) --resolve--> Loaded (checked against the graph)

A wrong flag or file is a ConfigurationError that names it, raised before anything runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...devices import Cluster, load_cluster, local_cluster
from ...devices.kinds import cluster_kinds, defaults_of
from ...devices.pipeline import Pipeline
from ...errors import InvalidArgumentError
from ...graph import Graph, Node, NodeProperties, StepStats, graph_def_to_graph
from ...graph.columns import SINK_ID
from ...graph.device_name import find_full_name
from ...graph.dtypes import Array, DataType, Shape, base_type, dtype_name
from ...graph.formats.saved_model import (
    DEFAULT_SIGNATURE,
    SERVING_TAGS,
    SavedGraph,
    Signature,
    TensorSpec,
    load_saved_model,
)
from ...graph.formats.traces import step_stats_of
from ...graph.graphdef.files import no_graph_def, read_graph_bytes
from ...graph.graphdef.sources import parse_lazily
from ...graph.ops.device_kinds import CPU
from ...graph.passes.names import INLINE
from ...graph.passes.selection import Passes
from ..parallel_options import NOT_PARALLEL, ParallelOptions
from .choices import ChoiceOptions, read_choices
from .failure import ConfigurationError, configuring
from .feeds import Feed, checked_feeds, read_feeds, shape_text, split_assignment
from .parallel import check_parallel, default_cluster, made_parallel
from .screen import Screen, of_nodes
from .shapes import divide, split_shape

MEASURED = "measured:"  # and a file: a value of --costs
_MOST_DEVICES = 4096  # of a kind, that are made without a flag because nodes request them
_OPAQUE = frozenset({DataType.RESOURCE, DataType.VARIANT})


@dataclass(frozen=True, slots=True)
class Request:
    """The flags that the commands share, as texts and paths."""

    graph: Path
    feeds: tuple[str, ...] = ()
    feeds_file: Path | None = None
    fetches: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    devices: str | None = None
    cluster: Path | None = None
    signature: str | None = None
    tags: str | None = None
    passes: str = INLINE
    inline: bool | None = None
    soft_placement: bool = False
    recv_epochs: bool = False
    shapes: tuple[str, ...] = ()
    trips: tuple[str, ...] = ()
    branches: tuple[str, ...] = ()
    assume_size: int | None = None
    trace_in: Path | None = None
    trace_times: bool = False
    costs: str | None = None
    calibrations: tuple[Path, ...] = ()
    no_tf32: bool = False
    parallel: ParallelOptions = NOT_PARALLEL

    def files(self) -> dict[str, Path | None]:
        """The input files by flag; no output may overwrite them."""
        feeds = {f"--feed {text}": Path(file) for text in self.feeds if (file := text.partition("=")[2])}
        calibrations = {f"--calibration {path}": path for path in self.calibrations}
        costs = {"--costs": Path(self.measured) if self.measured else None}
        single = {"--feeds": self.feeds_file, "--cluster": self.cluster, "--trace-in": self.trace_in}
        return {"GRAPH": self.graph, **single, **feeds, **costs, **calibrations}

    @property
    def all_passes(self) -> str:
        """The passes of `--passes`, with `--inline` or without `--no-inline`; raises as `Passes.parse`."""
        names = [name for name in Passes.parse(self.passes).names if name != INLINE or self.inline is not False]
        return ",".join(names if INLINE in names or not self.inline else [INLINE, *names])

    def recorded(self) -> StepStats | None:
        """The trace of `--trace-in`; ConfigurationError for a file that is none."""
        with configuring("--trace-in"):
            return None if self.trace_in is None else step_stats_of(self.trace_in)

    @property
    def measured(self) -> str | None:
        """The trace of a real step that `--costs measured:FILE` names."""
        costs = self.costs or ""
        return costs.removeprefix(MEASURED) if costs.startswith(MEASURED) else None


@dataclass(frozen=True, slots=True)
class GraphFile:
    """A GraphDef as bytes, the number of its nodes, and their requested devices."""

    path: Path
    data: bytes
    nodes: int
    devices: frozenset[str]


@dataclass(frozen=True, slots=True)
class RequestFiles:
    """The contents of the files of a request; `feeds` maps names to values, None for only a name.

    `shapes` are those of the flags, of fed tensors and of others. `saved` is the graph of a SavedModel, and `signature`
    the requested signature of it, if any.
    """

    request: Request
    cluster: Cluster
    graph: GraphFile
    feeds: Mapping[str, Feed]
    shapes: Sequence[tuple[str, tuple[int, ...]]]
    choices: ChoiceOptions
    saved: SavedGraph | None = None
    signature: Signature | None = None


@dataclass(frozen=True, slots=True)
class Loaded:
    """A request checked against its graph, with default fetches and targets if none are given.

    `names` are the user's names of the fetches: tensors, or outputs of a signature. `shapes` are the output shapes, by
    node, of tensors that are computed.
    """

    request: Request
    cluster: Cluster
    graph: Graph
    feeds: Mapping[str, Feed]
    fetches: tuple[str, ...]
    targets: tuple[str, ...]
    names: tuple[str, ...]
    shapes: Mapping[str, tuple[Shape, ...]]
    choices: ChoiceOptions

    @property
    def pipeline(self) -> Pipeline:
        """The pipeline with the settings of the flags."""
        request = self.request
        return Pipeline(self.cluster, Passes.parse(request.all_passes), allow_soft_placement=request.soft_placement)

    @property
    def fed(self) -> dict[str, Array | tuple[int, ...]]:
        """The feeds that have a value or a shape, not only a name."""
        return {name: feed for name, feed in self.feeds.items() if feed is not None}

    def values(self) -> dict[str, Array]:
        """The feeds; ConfigurationError when one was named without a file."""
        values = {name: value for name, value in self.feeds.items() if isinstance(value, np.ndarray)}
        missing = [name for name in self.feeds if name not in values]
        if missing:
            raise ConfigurationError(f"feed {missing[0]!r} has no value; write --feed {missing[0]}=FILE.npy")
        return values


def read_graph(path: Path, screen: Screen) -> GraphFile:
    """Reads a graph file; ConfigurationError if it is missing, broken or empty."""
    with screen.working(f"reading {path.name}"), configuring():
        return _graph_file(read_graph_bytes(path), path)


def check_needs_no_model(path: Path, signature: str | None, tags: str | None) -> None:
    """ConfigurationError for a flag that only the folder of a SavedModel has a use for."""
    for flag, value in {"--signature": signature, "--tags": tags}.items():
        if value is not None:
            raise ConfigurationError(f"{flag}: {str(path)!r} is not a SavedModel folder")


def read_saved_model(path: Path, tags: str | None, screen: Screen) -> tuple[GraphFile, SavedGraph]:
    """Reads the graph of a SavedModel with `tags`, by default that which serves; raises as `read_graph`."""
    with screen.working(f"reading {path.name}"), configuring():
        saved = load_saved_model(path, SERVING_TAGS if tags is None else tags.split(","))
        return _graph_file(saved.graph_def.SerializeToString(), path), saved


def _graph_file(data: bytes, path: Path) -> GraphFile:
    try:
        lazy = parse_lazily(data)
    except InvalidArgumentError as error:
        raise no_graph_def(path) from error
    if not lazy.node:
        raise ConfigurationError(f"graph {str(path)!r} has no nodes; give a GraphDef (.pb, or .pbtxt for text)")
    return GraphFile(path, data, len(lazy.node), frozenset({node.device for node in lazy.node}))


def import_graph(file: GraphFile, screen: Screen) -> Graph:
    """Imports the graph of a file; ConfigurationError if it is not valid."""
    with screen.working("importing", file.nodes, "nodes") as on_progress, configuring(f"graph {str(file.path)!r}"):
        return graph_def_to_graph(file.data, add_default_attrs=True, on_progress=on_progress)


def read(request: Request, screen: Screen) -> RequestFiles:
    """Reads the files of a request; ConfigurationError for the first wrong flag or file."""
    if request.devices is not None and request.cluster is not None:
        raise ConfigurationError("--devices and --cluster exclude each other; give one of them")
    feeds = read_feeds([split_assignment(text) for text in request.feeds], request.feeds_file)
    shapes = [split_shape(text) for text in request.shapes]
    choices = read_choices(request.trips, request.branches)
    check_parallel(request.parallel)
    if not request.graph.is_dir():
        check_needs_no_model(request.graph, request.signature, request.tags)
        graph, saved, signature = read_graph(request.graph, screen), None, None
    else:
        graph, saved = read_saved_model(request.graph, request.tags, screen)
        with configuring():
            signature = _signature(request, saved)
    if request.parallel.rewrites:
        graph = _rewritten(request, graph, signature, screen)
    return RequestFiles(request, _cluster(request, graph), graph, feeds, shapes, choices, saved, signature)


def _rewritten(request: Request, file: GraphFile, signature: Signature | None, screen: Screen) -> GraphFile:
    """The graph after the passes for training steps that the flags ask for, as if it had been read from the file."""
    with_devices = request.devices is not None or request.cluster is not None
    cluster = _cluster(request, file) if with_devices else default_cluster(sorted(file.devices), request.parallel)
    graph = import_graph(file, screen)
    with screen.working(f"rewriting {of_nodes(graph)}"):
        graph = made_parallel(graph, request.parallel, cluster, signature)
        return _graph_file(graph.SerializeToString(), file.path)


def _signature(request: Request, saved: SavedGraph) -> Signature | None:
    """The requested signature; the default one if there are neither fetches nor targets. NotFoundError if missing."""
    if request.signature is None and (request.fetches or request.targets):
        return None
    return saved.signature(request.signature or DEFAULT_SIGNATURE)


def resolve(inputs: RequestFiles, graph: Graph) -> Loaded:
    """Checks a request against its graph; ConfigurationError for a feed that does not fit.

    With a signature its names stand for tensors. Without fetches and targets all its outputs are fetched, or without
    one what `ends` says.
    """
    signature, given, shapes = inputs.signature, dict(inputs.feeds), inputs.shapes
    names, targets = inputs.request.fetches, inputs.request.targets
    if signature is not None:
        shaped = {name for name, _ in shapes}
        defaults = {name: value for name, value in signature.defaults.items() if name not in shaped}
        given = {_tensor_of(signature.inputs, name): feed for name, feed in {**defaults, **given}.items()}
        shapes = [(_tensor_of(signature.inputs, name), sizes) for name, sizes in shapes]
        names = names or (() if targets else tuple(signature.outputs))
    feeds, computed = divide(shapes, given, graph)
    if not names and not targets and signature is None:
        names, targets = ends(_as_written(inputs, graph))
        names = tuple(name for name in names if name not in feeds)  # a tensor cannot be fed and fetched
    fetches = names if signature is None else tuple(_tensor_of(signature.outputs, name) for name in names)
    checked = checked_feeds(feeds, graph)
    return Loaded(inputs.request, inputs.cluster, graph, checked, fetches, targets, names, computed, inputs.choices)


def _tensor_of(specs: Mapping[str, TensorSpec], name: str) -> str:
    """The tensor that a name of a signature stands for; any other name as it is."""
    return specs[name].tensor if name in specs else name


def _as_written(inputs: RequestFiles, graph: Graph) -> Graph:
    """The graph before lowering, which adds nodes without consumers that are not meant to be fetched."""
    return graph_def_to_graph(inputs.graph.data) if graph.functions else graph


def load(request: Request, screen: Screen) -> Loaded:
    """Reads the files of a request and imports the graph."""
    inputs = read(request, screen)
    return resolve(inputs, import_graph(inputs.graph, screen))


def _cluster(request: Request, graph: GraphFile) -> Cluster:
    if request.devices is not None and request.devices.endswith(".toml"):
        raise ConfigurationError(f"--devices: {request.devices!r} is a file; give it with --cluster")
    with configuring("" if request.devices is None else "--devices"):
        if request.cluster is not None:
            cluster = load_cluster(request.cluster)
        else:
            cluster = local_cluster(wanted_devices(graph.devices, request.devices))
    return cluster.without_tf32() if request.no_tf32 else cluster


def wanted_devices(names: Iterable[str], given: str | None = None) -> str:
    """The devices of one machine as text: `given`, or else a CPU and enough devices of every kind for the requests."""
    if given is not None:
        return given
    counts = {kind: int(kind == CPU.name) for kind in cluster_kinds() if defaults_of(kind).spec}
    for name in map(find_full_name, names):
        if name is not None and name.type in counts and name.id is not None and name.id < _MOST_DEVICES:
            counts[name.type] = max(counts[name.type], name.id + 1)
    return ",".join(f"{kind.lower()}:{count}" for kind, count in counts.items() if count)


def ends(graph: Graph) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The default fetches and targets of a graph, which together run all of it.

    Of the nodes without consumers, those whose outputs are plain values are fetched, and the others are targets.
    """
    edges = graph.edge_arrays()
    read = np.zeros(graph.num_node_ids, np.bool_)
    read[edges.src[edges.dst > SINK_ID]] = True
    fetches: list[str] = []
    targets: list[str] = []
    for node_id, properties in live_nodes(graph):
        if read[node_id]:
            continue
        name, types = graph.node_name(node_id), properties.output_types
        if types and not any(base_type(dtype) in _OPAQUE for dtype in types):
            fetches += [name] if len(types) == 1 else [f"{name}:{k}" for k in range(len(types))]
        else:
            targets.append(name)
    return tuple(fetches), tuple(targets)


def live_nodes(graph: Graph) -> Iterator[tuple[int, NodeProperties]]:
    """Id and properties of each node but source and sink, without making a `Node` for each of a million."""
    return (
        (i, properties) for i, properties in enumerate(graph.all_properties()) if properties is not None and i > SINK_ID
    )


def check_fed(parts: Iterable[Graph]) -> None:
    """ConfigurationError for a placeholder that is left in the graphs of a request: it is not fed."""
    unfed = [
        part.node(n) for part in parts for n, properties in live_nodes(part) if properties.op_def.record.must_be_fed
    ]
    if unfed:
        more = f" (and {len(unfed) - 1} more)" if len(unfed) > 1 else ""
        example = f"--feed {unfed[0].name}=FILE.npy"
        raise ConfigurationError(f"placeholder {describe(unfed[0])} is not fed{more}; add {example}")


def describe(placeholder: Node) -> str:
    """'x' (float [?,3]): name, element type and shape of a placeholder."""
    dtype = dtype_name(base_type(placeholder.output_types[0]))
    return f"{placeholder.name!r} ({dtype} {shape_text(placeholder.attrs.get('shape'))})"
