"""The stages of the pipeline: each leaves the one before unchanged, any may be the first, names go on counting."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from hypothesis import given, strategies as st

from partita.devices import local_cluster
from partita.devices.pipeline import Imported, Lowered, Pipeline, Placed, Pruned
from partita.graph import GraphDef
from partita.graph.builder import GraphBuilder
from partita.graph.dtypes import Array
from partita.graph.functions.body import instantiate
from partita.graph.graph import Graph
from partita.graph.ops.properties import NodeProperties
from partita.graph.passes.selection import Passes
from tests.actors.running.function_programs import FunctionProgram, function_programs
from tests.function_defs import function_of
from tests.strategies import GraphCase, cpu, placed_cases

FOUR = local_cluster("cpu:4")


class Sevens:
    """An evaluator for which every sum is 7."""

    def can_run(self, properties: NodeProperties) -> bool:
        return properties.op == "AddV2"

    def run(self, graph: Graph, fetches: Sequence[str]) -> Sequence[Array]:
        return [np.array(7, np.float32) for _ in fetches]


def bytes_of(graph: Graph) -> bytes:
    """The graph as a file has it, devices and all."""
    return graph.to_graph_def().SerializeToString(deterministic=True)


def messages(parts: Mapping[str, Graph]) -> dict[str, bytes]:
    return {name: bytes_of(part) for name, part in parts.items()}


def devices_of(graph: Graph) -> dict[str, str]:
    return {node.name: node.assigned_device for node in graph.op_nodes()}


def transfers(graphs: Iterable[Graph]) -> list[str]:
    """Names of the transfers, in the order in which they were made."""
    names = [node.name for graph in graphs for node in graph.op_nodes() if node.is_send or node.is_recv]
    return sorted(names, key=lambda name: int(name.rpartition("_")[2]))


def there_and_back() -> GraphDef:
    """x + (1 + 2) on CPU:1, negated on CPU:0."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", (), device=cpu(0))
    with b.device(cpu(1)):
        three = b.op("AddV2", b.constant(1.0), b.constant(2.0), name="three")
        there = b.op("Mul", x, three, name="there")
    b.op("Neg", there, name="back", device=cpu(0))
    return b.graph_def()


@given(function_programs(conflicting=False), st.booleans())
def test_a_stage_leaves_the_one_before_as_it_is(program: FunctionProgram, inline: bool) -> None:
    """The graph of a stage has the same bytes after the next stage was made."""
    pipeline = Pipeline(FOUR, Passes.parse("inline,fold,common" if inline else "fold,common"))
    imported = pipeline.read(program.graph_def)
    before = [bytes_of(imported.graph)]
    lowered = imported.lower()
    before.append(bytes_of(lowered.graph))
    placed = lowered.place()
    before.append(bytes_of(placed.graph))
    pruned = placed.prune(list(program.feeds), program.fetches)
    before.append(bytes_of(pruned.graph))
    cut = pruned.cut()
    parts = messages(cut.graphs)
    cut.optimise(Sevens)
    assert [bytes_of(stage.graph) for stage in (imported, lowered, placed, pruned)] == before
    assert messages(cut.graphs) == parts
    assert set(devices_of(lowered.graph).values()) == {""}


@given(placed_cases())
def test_any_stage_may_be_the_first(drawn: tuple[GraphCase, dict[str, str]]) -> None:
    """A graph imported, lowered, placed or pruned elsewhere is cut in the same way."""
    case, placement = drawn
    request = list(case.feeds), case.fetches, case.targets
    imported = Pipeline(FOUR).read(case.on(placement))
    lowered = imported.lower()
    placed = lowered.place()
    pruned = placed.prune(*request)
    expected = messages(pruned.cut().graphs)
    ways = [
        Imported(Pipeline(FOUR), imported.graph).lower().place().prune(*request),
        Lowered(Pipeline(FOUR), lowered.graph).place().prune(*request),
        Placed(Pipeline(FOUR), placed.graph).prune(*request),
        Pruned(Pipeline(FOUR), pruned.graph, pruned.feed_types, pruned.fetch_types),
    ]
    assert all(messages(way.cut().graphs) == expected for way in ways)


def test_names_go_on_counting_from_request_to_request() -> None:
    """Also after a device restarted, when the pipeline gets another cluster."""
    pipeline = Pipeline(FOUR)
    placed = pipeline.read(there_and_back()).lower().place()
    first = placed.prune(["x"], ["back"]).cut()
    assert transfers(first.graphs.values()) == ["_arg_x_0_0/_0", "_arg_x_0_0/_1", "there/_2", "there/_3"]
    restarted = Placed(replace(pipeline, cluster=FOUR.with_restarted(cpu(1))), placed.graph)
    second = restarted.prune(["x"], ["back"]).cut()
    assert transfers(second.graphs.values()) == ["_arg_x_0_0/_4", "_arg_x_0_0/_5", "there/_6", "there/_7"]
    (send,) = [node for node in second.graphs[cpu(1)].op_nodes() if node.is_send]
    assert send.attrs["send_device_incarnation"] == 2


def test_a_pruned_graph_knows_what_goes_in_and_out() -> None:
    """Element types of feeds and fetches in order, with duplicates."""
    b = GraphBuilder()
    b.op("Cast", b.placeholder("x", "float32", ()), name="whole", DstT="int32")
    pruned = Pipeline(FOUR).read(b).lower().place().prune(["x"], ["whole", "whole:0"])
    assert ([t.name for t in pruned.feed_types], [t.name for t in pruned.fetch_types]) == (["FLOAT"], ["INT32"] * 2)


def test_what_is_pruned_first_is_placed_afterwards() -> None:
    """Nodes outside the request may request any device; a variable stays on the device of an earlier request."""
    b = GraphBuilder()
    handle = b.op("VarHandleOp", name="v", dtype="float32", shape=())[0]
    b.op("ReadVariableOp", handle, name="read", dtype="float32")
    b.op("Neg", b.placeholder("x", "float32", ()), name="elsewhere", device="/job:nobody/device:CPU:0")
    lowered = Pipeline(local_cluster("cpu:2")).read(b).lower()
    first, second = (lowered.prune(fetches=["read"]).place(default_device=cpu(k)) for k in (1, 0))
    assert devices_of(first.graph)["v"] == devices_of(second.graph)["v"] == cpu(1)
    assert first.place() is first


def test_of_a_body_results_run_and_what_has_effects() -> None:
    """Other nodes of a function are removed from a call."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", ())
    b.op("Neg", x, name="unread")
    b.op("PrintV2", b.op("AsString", x), name="printed")
    b.op("Abs", x, name="y")
    library = GraphDef()
    library.library.function.append(function_of("f", b.graph_def(), ["x:0"], ["y:0"]))
    body = instantiate(Pipeline(FOUR).read(library).graph.functions, "f")
    kept = Pipeline(FOUR).prune_body(body)
    names = {node.name for node in kept.graph.op_nodes()}
    assert names >= {"printed", "y"}
    assert "unread" not in names


def test_partitions_are_optimised_with_the_evaluator_that_is_handed_in() -> None:
    """They stay as they are if the pipeline has no passes."""
    cut = Pipeline(FOUR).read(there_and_back()).lower().place().prune(["x"], ["back"]).cut()
    plain = cut.optimise(Sevens)
    assert all(plain.graphs[name] is graph for name, graph in cut.graphs.items())
    folded = replace(cut, pipeline=Pipeline(FOUR, Passes.parse("fold"))).optimise(Sevens)
    (constant,) = [node for node in folded.graphs[cpu(1)].op_nodes() if node.op == "Const"]
    assert constant.attrs["value"] == np.float32(7)
