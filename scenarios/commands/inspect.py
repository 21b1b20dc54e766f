"""`partita inspect`: the contents of a graph, without running or placing it.

Counts of ops and devices, placeholders, default fetches, the signatures of a SavedModel, and ops without a kernel or a
shape function, also in functions that may be called.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from ...actors.running.runnable import MissingKernel, graphs_that_run, missing_kernels
from ...devices.short_names import ShortNames
from ...graph import Graph, Node
from ...graph.analysis import shape_functions as shapes
from ...graph.columns import SINK_ID
from ...graph.device_name import find_full_name
from ...graph.dtypes import base_type, dtype_name
from ...graph.formats.saved_model import Signature, TensorSpec
from ...graph.library.calls import calls_functions
from ...graph.passes.lower_functional import lower_functional
from .failure import configuring
from .feeds import shape_text
from .request import check_needs_no_model, ends, import_graph, live_nodes, read_graph, read_saved_model
from .screen import Screen


@dataclass(frozen=True, slots=True)
class InputReport:
    """One placeholder, or one input of a signature; a default makes it optional.

    `shape` is None for an unknown rank, a size None when unknown.
    """

    name: str
    dtype: str
    shape: list[int | None] | None
    has_default: bool


@dataclass(frozen=True, slots=True)
class OutputReport:
    """One output of a signature; `shape` as of a `InputReport`."""

    name: str
    dtype: str
    shape: list[int | None] | None


@dataclass(frozen=True, slots=True)
class SignatureReport:
    """One signature of a SavedModel."""

    name: str
    inputs: list[InputReport]
    outputs: list[OutputReport]


@dataclass(frozen=True, slots=True)
class Findings:
    """The object that `inspect --json` prints. `devices` and the `ops...` map names to numbers of nodes.

    The device of nodes without a request is "". The nodes of a function are counted once, and only in the lists of
    nodes without kernel or shape function.
    """

    nodes: int
    edges: int
    functions: int
    producer: int
    ops: dict[str, int]
    devices: dict[str, int]
    feeds: list[InputReport]
    fetches: list[str]
    targets: list[str]
    ops_without_kernel: dict[str, int]
    nodes_without_kernel: list[MissingKernel]
    ops_without_shape_function: dict[str, int]
    signatures: list[SignatureReport]


def inspect(path: Path, tags: str | None, as_json: bool) -> None:
    """Prints what is in a graph file, or in the graph of a SavedModel with `tags`; raises ConfigurationError."""
    screen = Screen()
    saved = None
    if path.is_dir():
        file, saved = read_saved_model(path, tags, screen)
    else:
        check_needs_no_model(path, None, tags)
        file = read_graph(path, screen)
    graph = import_graph(file, screen)
    with screen.working("looking at the nodes"), configuring(f"graph {str(path)!r}"):
        report = findings(graph, saved.signatures if saved is not None else {})
    if as_json:
        screen.json(asdict(report))
    else:
        _print(report, screen)


def findings(graph: Graph, signatures: Mapping[str, Signature]) -> Findings:
    """The findings on a graph and the signatures of its SavedModel; most frequent first.

    Missing kernels and shape functions are those of the lowered graph, which is the one that runs, and of the functions
    that it may call. Raises whatever lowering raises.
    """
    run = list(graphs_that_run(lower_functional(graph)))
    missing = [node for name, part in run for node in missing_kernels(name, part)]
    shapeless = Counter(op for _, part in run for op in _ops_without_shape_function(part))
    ops = Counter(properties.op for _, properties in live_nodes(graph))
    requested, names = graph.requested_device_indices(), graph.device_names()
    devices = Counter(names[requested[node_id]] for node_id, _ in live_nodes(graph))
    edges = graph.edge_arrays()
    fetches, targets = ends(graph)
    return Findings(
        nodes=ops.total(),
        edges=int(((edges.src > SINK_ID) & (edges.dst > SINK_ID)).sum()),
        functions=len(graph.library.function),
        producer=graph.versions.producer,
        ops=dict(ops.most_common()),
        devices=dict(devices.most_common()),
        feeds=[
            _feed(graph.node(node_id))
            for node_id, properties in live_nodes(graph)
            if properties.op_def.record.is_placeholder
        ],
        fetches=list(fetches),
        targets=list(targets),
        ops_without_kernel=dict(Counter(node.op for node in missing).most_common()),
        nodes_without_kernel=missing,
        ops_without_shape_function=dict(shapeless.most_common()),
        signatures=[_call(name, signature) for name, signature in signatures.items()],
    )


def _ops_without_shape_function(graph: Graph) -> Iterator[str]:
    """The op of each node whose outputs get no shape. Calls get the shapes of their function's results."""
    for _, kind in live_nodes(graph):
        if kind.output_types and shapes.lookup(kind.op) is None and not calls_functions(kind, graph.functions):
            yield kind.op


def _feed(node: Node) -> InputReport:
    shape = node.attrs.get("shape")
    return InputReport(
        name=node.name,
        dtype=dtype_name(base_type(node.output_types[0])),
        shape=None if shape is None else list(shape),
        has_default=node.op == "PlaceholderWithDefault",
    )


def _call(name: str, signature: Signature) -> SignatureReport:
    return SignatureReport(
        name,
        [InputReport(key, *_type_and_shape(spec), key in signature.defaults) for key, spec in signature.inputs.items()],
        [OutputReport(key, *_type_and_shape(spec)) for key, spec in signature.outputs.items()],
    )


def _type_and_shape(spec: TensorSpec) -> tuple[str, list[int | None] | None]:
    return dtype_name(spec.dtype), None if spec.shape is None else list(spec.shape)


def _print(report: Findings, screen: Screen) -> None:
    library = f", {report.functions} functions" if report.functions else ""
    screen.line(f"{report.nodes:,} nodes, {report.edges:,} edges{library}, producer {report.producer}")
    screen.line()
    _counts(screen, "op", report.ops)
    short = _short_names(report.devices)
    _counts(screen, "requested device", {short(name) or "(none)": n for name, n in report.devices.items()})
    if report.feeds:
        rows = [[f.name, f.dtype, shape_text(f.shape), "has a default" if f.has_default else ""] for f in report.feeds]
        screen.table(["feeds", "type", "shape", ""], rows, left=4)
        screen.line()
    for call in report.signatures:
        rows = [
            [x.name, "in", x.dtype, shape_text(x.shape), "has a default" if x.has_default else ""] for x in call.inputs
        ]
        rows += [[y.name, "out", y.dtype, shape_text(y.shape), ""] for y in call.outputs]
        screen.table([f"signature {call.name}", "", "type", "shape", ""], rows, left=5)
        screen.line()
    for heading, names in (("ends, fetched by default", report.fetches), ("ends, run by default", report.targets)):
        if names:
            screen.line(f"{heading}: {screen.listed(names)}")
    for heading, ops in (("kernel", report.ops_without_kernel), ("shape function", report.ops_without_shape_function)):
        screen.line(f"ops without {heading}: {screen.listed([f'{op} ({n})' for op, n in ops.items()]) or 'none'}")
    if report.nodes_without_kernel:
        screen.line()
        rows = [[node.node, node.op, node.function or "-"] for node in report.nodes_without_kernel]
        screen.table(["nodes without kernel", "op", "in function"], rows, left=3)


def _short_names(devices: Iterable[str]) -> Callable[[str], str]:
    """A function that shortens full device names; partial names stay as they are."""
    return ShortNames(name for name in devices if (parsed := find_full_name(name)) and parsed.is_full).shorten


def _counts(screen: Screen, heading: str, counts: dict[str, int]) -> None:
    screen.table([heading, "nodes"], [[name, f"{count:,}"] for name, count in counts.items()])
    screen.line()
