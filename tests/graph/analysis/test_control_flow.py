"""Frames of nodes: random nests of loops are understood, and each kind of malformed loop has TensorFlow's error.

Flows in: graphs as GraphDefs of Enter, Identity, Exit. The messages are what TensorFlow 2.21 said about these graphs.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError, PartitaError
from partita.graph import GraphDef
from partita.graph.analysis.control_flow import build_control_flow_info
from partita.graph.attrs import encode
from partita.graph.columns import SOURCE_ID
from partita.graph.dtypes import DataType
from partita.graph.graph import Graph
from partita.graph.graphdef.importer import graph_def_to_graph
from partita.graph.partition.options import PartitionOptions
from partita.graph.partition.split import split_graph

FLOAT, BOOL = DataType.FLOAT, DataType.BOOL
CPU = "/job:localhost/replica:0/task:0/device:CPU:0"


class Loops:
    """Writes a GraphDef: constant `c` in the root frame, then the nodes that are added."""

    def __init__(self) -> None:
        self.graph_def = GraphDef()
        self.add("c", "Placeholder", dtype=FLOAT)
        self.add("p", "Placeholder", dtype=BOOL)

    def add(self, name: str, op: str, *inputs: str, **types: DataType) -> str:
        """Adds a node with type attrs."""
        node = self.graph_def.node.add(name=name, op=op, input=inputs, device=CPU)
        for key, dtype in (types or {"T": FLOAT}).items():
            node.attr[key].CopyFrom(encode(dtype, "type"))
        return name

    def enter(self, name: str, value: str, frame: str | None, *control: str, dtype: DataType = FLOAT) -> str:
        """Adds an Enter; without a frame name if `frame` is None."""
        self.add(name, "Enter", value, *control, T=dtype)
        if frame is not None:
            self.graph_def.node[-1].attr["frame_name"].CopyFrom(encode(frame.encode(), "string"))
        return name

    def graph(self) -> Graph:
        """The graph, all on one device."""
        return graph_def_to_graph(self.graph_def, expect_device=True)


@st.composite
def nests(draw: st.DrawFn) -> tuple[Loops, dict[str, list[str]]]:
    """Nested frames, and for each node the names of its frames, outermost first, "" for the root."""
    loops, frames_of = Loops(), {"c": [""], "p": [""]}
    outside = [("c", [""])]
    for number in range(draw(st.integers(1, 6))):
        value, frames = draw(st.sampled_from(outside))
        inner = [*frames, f"f{number}"]
        enter = loops.enter(f"enter{number}", value, inner[-1])
        body = loops.add(f"body{number}", "Identity", enter)
        leave = loops.add(f"exit{number}", "Exit", body)
        after = loops.add(f"after{number}", "Identity", leave)
        frames_of |= {enter: inner, body: inner, leave: inner, after: frames}
        outside += [(body, inner), (after, frames)]
    return loops, frames_of


@given(nests())
def test_every_node_is_in_its_frame(nest: tuple[Loops, dict[str, list[str]]]) -> None:
    """Name of the frame, and of the parent frame; Enter nodes are the frames they open."""
    loops, frames_of = nest
    graph = loops.graph()
    info = build_control_flow_info(graph)
    for node in graph.op_nodes():
        frames = frames_of[node.name]
        assert info.frame_name[node.id] == frames[-1]
        assert info.frame_name[info.parent_frame[node.id]] == ("" if len(frames) == 1 else frames[-2])
        assert (info.frame[node.id] == SOURCE_ID) == (frames == [""])
        assert (info.frame[node.id] == node.id) == (node.op == "Enter")


@given(nests(), st.data())
def test_an_edge_between_frames_is_found(nest: tuple[Loops, dict[str, list[str]]], data: st.DataObject) -> None:
    """One control edge out of a frame, or into one, is an error, whichever node is reached first."""
    loops, frames_of = nest
    order = [node.name for node in loops.graph_def.node]
    late = data.draw(st.sampled_from([node for node in loops.graph_def.node if node.op == "Identity"]))
    foreign = [n for n in order[: order.index(late.name)] if n[:4] != "exit" and frames_of[n] != frames_of[late.name]]
    late.input.append("^" + data.draw(st.sampled_from(foreign or ["c"])))
    if not foreign and frames_of[late.name] == [""]:
        build_control_flow_info(loops.graph())
        return
    with pytest.raises(InvalidArgumentError, match=r"has inputs from different frames|Cannot find a corresponding"):
        build_control_flow_info(loops.graph())


def two_frames(loops: Loops) -> None:
    """A node with inputs from two frames."""
    loops.add("a", "AddV2", loops.enter("e1", "c", "f"), loops.enter("e2", "c", "g"))


def two_frames_of_an_enter(loops: Loops) -> None:
    """An Enter with inputs from two frames."""
    loops.enter("e2", loops.enter("e1", "c", "f"), "g", "^c")


def two_parents(loops: Loops) -> None:
    """One frame name in two frames."""
    loops.enter("e2", loops.enter("e1", "c", "f"), "g")
    loops.enter("e3", "c", "g")


def empty_name(loops: Loops) -> None:
    """An Enter whose frame has no name."""
    loops.enter("e1", "c", "")


def no_name(loops: Loops) -> None:
    """An Enter without the attr."""
    loops.enter("e1", "c", None)


def exit_of_the_root(loops: Loops) -> None:
    """An Exit in no frame."""
    loops.add("x", "Exit", "c")


def two_conditions(loops: Loops) -> None:
    """Two LoopCond nodes in one frame; TensorFlow and we number nodes alike."""
    loops.enter("e", "p", "f", dtype=BOOL)
    loops.add("l1", "LoopCond", "e")
    loops.add("lc", "LoopCond", "e")
    for node in list(loops.graph_def.node)[-2:]:
        del node.attr["T"]


MISTAKES: dict[Callable[[Loops], None], tuple[str, str]] = {
    two_frames: (
        "INVALID_ARGUMENT",
        "{{node a}} has inputs from different frames. The input {{node e2}} is in frame 'g'. "
        "The input {{node e1}} is in frame 'f'.",
    ),
    two_frames_of_an_enter: (
        "INVALID_ARGUMENT",
        "{{node e2}} has inputs from different frames. The input {{node e1}} is in frame 'f'. "
        "The input {{node c}} is in frame ''.",
    ),
    two_parents: ("INTERNAL", 'Invalid loop structure: Mismatched parent frames for "g": "" vs "f".'),
    empty_name: ("INVALID_ARGUMENT", "The Enter {{node e1}} must have a frame name."),
    no_name: ("NOT_FOUND", "No attr named 'frame_name'"),
    exit_of_the_root: ("INVALID_ARGUMENT", "Invalid Exit op: Cannot find a corresponding Enter op."),
    two_conditions: (
        "INVALID_ARGUMENT",
        'Invalid loop structure: Loop "f" has more than one LoopCond node: {{node lc}} and {{node l1}}.',
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_malformed_loops_have_tensorflows_error(mistake: Callable[[Loops], None]) -> None:
    """Partitioning refuses them as the analysis does."""
    loops = Loops()
    mistake(loops)
    code, message = MISTAKES[mistake]
    for examine in (build_control_flow_info, lambda graph: split_graph(graph, PartitionOptions())):
        with pytest.raises(PartitaError) as caught:
            examine(loops.graph())
        assert caught.value.code == code
        assert caught.value.message.startswith(message)


def test_loop_counters_may_be_many() -> None:
    """A frame may have a second LoopCond if one of the two says that it is a LoopCounter."""
    loops = Loops()
    two_conditions(loops)
    loops.graph_def.node[-1].name = "while/LoopCounter"
    assert build_control_flow_info(loops.graph()).frame
