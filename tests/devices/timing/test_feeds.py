"""A feed of a simulated step has the type and shape of its tensor, or is refused with both named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.devices import cut
from partita.devices.timing import Timeline, simulate
from partita.errors import InvalidArgumentError
from partita.graph import DataType, Graph
from partita.graph.analysis.joined import JoinedGraph
from partita.graph.builder import GraphBuilder
from partita.graph.shape_inference.infer import infer_joined
from partita.graph.shape_inference.inferred import AssumedShape

from .steps import StepBuilder, cluster, cpu

HARDWARE = cluster(2)


def parts(*feeds: str, fetch: str = "y", producer: int = 2474) -> dict[str, Graph]:
    """x float [?,4] -> h = x w [?,8] -> y, on two devices; s a scalar, t of any shape, n a text."""
    b = GraphBuilder()
    x, s, t = b.placeholder("x", "float32", (None, 4)), b.placeholder("s", "float32", ()), b.placeholder("t", "float32")
    h = b.op("MatMul", x, np.zeros((4, 8), np.float32), name="h")
    b.op("Neg", h, name="y", device="/device:CPU:1")
    b.op("Neg", s, name="of_s")
    b.op("Neg", t, name="of_t")
    b.op("StringLength", b.placeholder("n", "string", (2,)), name="of_n")
    graph_def = b.graph_def()
    graph_def.versions.producer = producer
    return cut(graph_def, HARDWARE, feeds=feeds, fetches=[fetch])


def step(cut_parts: dict[str, Graph], **feeds: Any) -> Timeline:
    """The step with those feeds."""
    return simulate(cut_parts, HARDWARE, feeds=feeds)


@given(st.integers(0, 50), st.sampled_from(["x", "h"]))
def test_a_shape_is_as_good_as_a_value(rows: int, name: str) -> None:
    """For a placeholder and for a computed tensor."""
    shape = (rows, 4 if name == "x" else 8)
    cut_parts = parts(name)
    by_value = simulate(cut_parts, HARDWARE, feeds={f"{name}:0": np.zeros(shape, np.float32)})
    assert simulate(cut_parts, HARDWARE, feeds={name: shape}).events == by_value.events
    assert simulate(cut_parts, HARDWARE, feeds={name: (rows, None)}).events == by_value.events


@pytest.mark.parametrize(
    ("feeds", "words"),
    [
        ({"x": (3, 5)}, ["(3, 5)", "(None, 4)", "'x:0'"]),
        ({"x": (4,)}, ["(4,)", "(None, 4)"]),
        ({"x": np.zeros((3, 5), np.float32)}, ["(3, 5)", "(None, 4)"]),
        ({"x": np.zeros((3, 4))}, ["float64", "the graph wants float"]),
        ({"x": np.zeros((3, 4), np.int32)}, ["int32", "the graph wants float"]),
        ({"x": (-1, 4)}, ["(-1, 4)", "negative"]),
        ({"x": (2.0, 4)}, ["(2.0, 4)", "whole numbers"]),
        ({"x": ("2", 4)}, ["whole numbers"]),
        ({"x": (2**62, 4)}, ["more elements than can be counted"]),
        ({"x": [3, 4]}, ["'x' is a list", "a tuple of sizes"]),
        ({"x": (3, 4), "x:0": (3, 4)}, ["'x:0'", "fed twice"]),
        ({"x": (3, 4), "typo": (3,)}, ["'typo'", "cut for feeds of 'x:0'"]),
        ({"x": (3, 4), "y": (3, 9)}, ["'y'", "(3, 9)", "computes (3, 8)"]),
        ({"x": (3, 4), "y:3": (3, 9)}, ["feed of output 3"]),
    ],
)
def test_what_contradicts_the_graph_is_refused(feeds: dict[str, Any], words: list[str]) -> None:
    """The error names the feed, its type or shape, and that of the graph."""
    with pytest.raises(InvalidArgumentError) as error:
        simulate(parts("x"), HARDWARE, feeds=feeds)
    assert [word for word in words if word not in str(error.value)] == []


def test_what_the_graph_computes_can_be_fed_what_it_could_compute() -> None:
    """Its shape is that of the graph if known, and is checked before any size is assumed."""
    assert step(parts("h"), h=(3, 8)).makespan_ns == step(parts("h"), h=np.zeros((3, 8), np.float32)).makespan_ns
    with pytest.raises(InvalidArgumentError, match=r"shape \(3, 9\), the graph's 'h:0' wants \(None, 8\)"):
        step(parts("h"), h=(3, 9))
    assert step(parts("x"), x=(3, 4), y=(3, 8)).makespan_ns == step(parts("x"), x=(3, 4)).makespan_ns


def test_what_is_not_given_has_the_shape_of_its_placeholder() -> None:
    """Sizes that the placeholder leaves open are unknown."""
    fed = step(parts("s", fetch="of_s"))
    assert (fed.makespan_ns, fed.warnings) == (step(parts("s", fetch="of_s"), s=()).makespan_ns, ())
    with pytest.raises(InvalidArgumentError, match="--shape x=2,4"):
        step(parts("x"))


def test_a_scalar_is_one_unless_its_producer_could_not_say_otherwise() -> None:
    """Up to producer 21 placeholders of any shape were written as scalars."""
    with pytest.raises(InvalidArgumentError, match=r"shape \(5,\).*wants \(\)"):
        step(parts("s", fetch="of_s"), s=(5,))
    old = parts("s", fetch="of_s", producer=21)
    assert step(old, s=(5,)).makespan_ns > step(old, s=()).makespan_ns


def test_numbers_and_texts() -> None:
    """Numbers of Python may be of any type; strings are fed as bytes, texts or objects."""
    assert step(parts("s", fetch="of_s"), s=1).makespan_ns == step(parts("s", fetch="of_s"), s=()).makespan_ns
    for texts in (np.array([b"a", b"b"]), np.array(["a", "b"]), np.array([b"a", b"b"], object)):
        assert step(parts("n", fetch="of_n"), n=texts).makespan_ns > 0
    with pytest.raises(InvalidArgumentError, match="the graph wants string"):
        step(parts("n", fetch="of_n"), n=np.zeros(2))


def test_a_default_that_is_not_replaced_has_its_own_shape() -> None:
    """A PlaceholderWithDefault that is not fed has the shape of its default."""
    times = []
    for shape in ((None, 4), (6, 4)):
        builder = StepBuilder()
        builder.feed("d", (6, 4))
        builder.op("p", "PlaceholderWithDefault", ["d"], dtype=DataType.FLOAT, shape=shape)
        builder.op("y", "Neg", ["p"])
        timeline = simulate({cpu(0): builder.graph}, HARDWARE)
        assert timeline.warnings == ()
        times.append(timeline.makespan_ns)
    assert times[0] == times[1]


def test_a_fed_tensor_of_unknown_size_has_the_name_it_is_fed_by() -> None:
    """Not that of the node of the client graph, both where its size is asked for and where it is assumed."""
    joined = JoinedGraph(parts("x"))
    assert infer_joined(joined, assumed_size=1).assumed == [AssumedShape("x", "shape of output 0", (1, 4))]
    with pytest.raises(InvalidArgumentError, match="first unknown in 'x'"):
        step(parts("x"))


def test_shapes_of_computed_tensors_may_be_given() -> None:
    """Of any output; None and nodes elsewhere say nothing."""
    known = simulate(parts("x"), HARDWARE, feeds={"x": (16, 4)})
    stated = simulate(
        parts("x"), HARDWARE, shapes={"h": ((16, 8),), "elsewhere": ((1,),), "y": (None,)}, assumed_size=16
    )
    assert stated.find("y").duration_ns == known.find("y").duration_ns


def test_the_shape_of_a_fed_tensor_may_be_given_as_that_of_its_node() -> None:
    """As the error that asks for it says; a feed goes before it."""
    fed = simulate(parts("x"), HARDWARE, feeds={"x": (16, 4)})
    for shapes, feeds in (({"x": ((16, 4),)}, {}), ({"x": ((5, 4),)}, {"x": (16, 4)})):
        assert simulate(parts("x"), HARDWARE, feeds=feeds, shapes=shapes).flops == fed.flops


@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        ({"h": ((5, 9),)}, r"'h:0' has shape \(5, 9\), where the graph computes \(16, 8\)"),
        ({"h": (16, 8)}, r"shapes\['h'\], output 0: 16 is not a shape"),
        ({"h": 5}, r"shapes\['h'\]: 5 is not a list with a shape for each output"),
        ({"h": ((-1, 8),)}, r"shapes\['h'\], output 0: .*cannot be negative"),
        ({"h": ((16, "8"),)}, r"shapes\['h'\], output 0: .*must be whole numbers"),
    ],
)
def test_other_shapes_are_refused(shapes: Any, words: str) -> None:
    """What is no shape, and what contradicts the graph."""
    with pytest.raises(InvalidArgumentError, match=words):
        simulate(parts("x"), HARDWARE, feeds={"x": (16, 4)}, shapes=shapes)
