"""Frames: who is in which, how deep, and through which nodes values come and go."""

from __future__ import annotations

from typing import Any

from partita.graph.analysis.joined import JoinedGraph
from partita.graph.analysis.levels import frames_of
from partita.graph.builder import GraphBuilder
from partita.graph.graphdef.importer import graph_def_to_graph


def nested() -> JoinedGraph:
    """A loop "inner" in a loop "outer"; each has one variable and a constant Enter of its predicate."""
    b = GraphBuilder()
    value, predicate = b.placeholder("x", "float32", ()), b.placeholder("p", "bool", ())
    backs = []
    for frame in ("outer", "inner"):
        attrs: dict[str, Any] = {"frame_name": frame, "parallel_iterations": 7}
        enter = b.op("Enter", value, name=f"{frame}/enter", **attrs)[0]
        predicate = b.op("Enter", predicate, name=f"{frame}/p", is_constant=True, **attrs)[0]
        merge = b.op("Merge", [enter, enter], name=f"{frame}/merge")[0]
        condition = b.op("LoopCond", predicate, name=f"{frame}/cond")[0]
        left, value = b.op("Switch", merge, condition, name=f"{frame}/switch")
        backs.append((frame, left))
    for frame, left in reversed(backs):
        b.op("NextIteration", value, name=f"{frame}/next")
        value = b.op("Exit", left, name=f"{frame}/exit")[0]
        if frame == "inner":
            value = b.op("Neg", value, name="behind")[0]
    graph_def = b.graph_def()
    for node in graph_def.node:
        if node.op == "Merge":
            node.input[1] = node.name.replace("merge", "next")
    return JoinedGraph({"": graph_def_to_graph(graph_def, add_default_attrs=True)})


def test_frames_of_nested_loops() -> None:
    """The inner frame is behind the outer one, and one deeper."""
    graph = nested()
    root, outer, inner = frames_of(graph).all
    assert [(frame.name, frame.parent, frame.depth) for frame in (root, outer, inner)] == [
        ("", -1, 0),
        ("outer", 0, 1),
        ("inner", 1, 2),
    ]
    for frame in (outer, inner):
        names = {kind: {graph.names[n] for n in getattr(frame, kind)} for kind in ("enters", "merges", "exits")}
        assert names["enters"] == {f"{frame.name}/enter", f"{frame.name}/p"}
        assert names["merges"] == {f"{frame.name}/merge"}
        assert names["exits"] == {f"{frame.name}/exit"}
        assert graph.names[frame.condition] == f"{frame.name}/cond"
        assert frame.parallel_iterations == 7


def test_nodes_are_in_the_frame_that_they_run_in() -> None:
    """An Enter runs in the frame around, an Exit in its own; their outputs are on the other side."""
    graph = nested()
    frames, number = frames_of(graph), {name: n for n, name in enumerate(graph.names)}
    assert [frames.of[number[name]] for name in ("x", "outer/enter", "inner/enter", "inner/exit", "behind")] == [
        0, 0, 1, 2, 1,
    ]  # fmt: skip
    assert frames.after(graph, number["inner/enter"]) == 2
    assert frames.after(graph, number["inner/exit"]) == 1
