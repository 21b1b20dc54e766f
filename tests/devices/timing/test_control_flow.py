"""Calls, loops and conditionals by example: what a step with them takes, and what must be said of them."""

from __future__ import annotations

import numpy as np
import pytest

from partita.devices import cut
from partita.devices.timing import Timeline, TimelineEvent, simulate
from partita.errors import InvalidArgumentError, NotFoundError
from partita.graph import Graph, GraphDef
from partita.graph.builder import GraphBuilder
from partita.graph.builder.handles import Tensor
from partita.graph.structured import cond, while_loop
from tests.function_defs import calling, func_attr, function_of

SIDE = 1024


def products(b: GraphBuilder, x: Tensor, count: int) -> Tensor:
    """x, multiplied with itself `count` times."""
    for _ in range(count):
        x = b.op("MatMul", x, x)[0]
    return x


def step(b: GraphBuilder | GraphDef, **given: object) -> Timeline:
    """The step that computes y on a generic CPU."""
    parts = cut(b, "cpu:1", feeds=["x"], fetches=["y"])
    return simulate(parts, "cpu:1", feeds={"x": (SIDE, SIDE)}, **given)  # type: ignore[arg-type]  # as the test gives it


def test_a_call_takes_the_time_of_its_body() -> None:
    """Two products in a function: 4.3 Gflop, 26.8 ms; their names begin with that of the call."""
    inner = GraphBuilder()
    y = products(inner, inner.placeholder("x", "float32", (SIDE, SIDE)), 2)
    b = GraphBuilder()
    b.function(function_of("twice", inner.graph_def(), ["x:0"], [y.name]))
    x = b.placeholder("x", "float32", (SIDE, SIDE))
    attrs = {"Tin": ["float32"], "Tout": ["float32"], "f": func_attr("twice")}
    b.identity(b.op("PartitionedCall", [x], name="call", attrs=attrs)[0], name="y")
    timeline = step(b)
    assert timeline.flops == 4 * SIDE**3
    assert round(timeline.makespan_ns / 1e6, 1) == 26.8
    assert timeline.find("call/MatMul").end_ns == timeline.find("call/MatMul_1").start_ns
    assert timeline.find("call").end_ns == timeline.makespan_ns


@pytest.mark.parametrize("devices", ["cpu:1", "cpu:2", "gpu:1"])
def test_a_step_whose_bodies_are_known_is_as_its_first(devices: str) -> None:
    """With other feeds in between, and after a simulation on other devices."""
    inner = GraphBuilder()
    y = products(inner, inner.placeholder("x", "float32"), 2)
    b = GraphBuilder()
    b.function(function_of("twice", inner.graph_def(), ["x:0"], [y.name]))
    x = b.placeholder("x", "float32")
    attrs = {"Tin": ["float32"], "Tout": ["float32"], "f": func_attr("twice")}
    b.identity(b.op("PartitionedCall", [x], name="call", attrs=attrs)[0], name="y")
    asked = [(cluster, side) for cluster in (devices, "cpu:1", devices) for side in (64, 128)]

    def rows(parts: dict[str, Graph], cluster: str, side: int) -> list[TimelineEvent]:
        return list(simulate(parts, cluster, feeds={"x": (side, side)}).events)

    known = {cluster: cut(b, cluster, feeds=["x"], fetches=["y"]) for cluster, _ in asked}
    for cluster, side in asked:
        fresh = cut(b, cluster, feeds=["x"], fetches=["y"])
        assert rows(known[cluster], cluster, side) == rows(fresh, cluster, side)


@pytest.mark.parametrize(
    ("op", "given", "words"),
    [
        ("Neg", {}, r"first unknown in 'x' \(_Arg\).* --shape x=2,3,.*node 'outer/inner/u'"),
        ("Unique", {"x": ((16,),)}, r"'outer/inner/u', output 0.* --shape outer/inner/u=2,.*node 'outer/inner/y'"),
    ],
)
def test_a_size_that_a_body_needs_is_asked_for_where_the_step_knows_its_name(
    op: str, given: dict[str, tuple[tuple[int, ...], ...]], words: str
) -> None:
    """What begins outside of the body is asked for there, through calls in calls; what begins inside by its path."""
    inner = GraphBuilder()
    inner.op("Neg", inner.op(op, inner.placeholder("v", "float32"), name="u")[0], name="y")
    attrs = {"Tin": ["float32"], "Tout": ["float32"]}
    outer = GraphBuilder()
    outer.function(function_of("f", inner.graph_def(), ["v:0"], ["y:0"]))
    v = outer.placeholder("v", "float32")
    outer.op("PartitionedCall", [v], name="inner", attrs={**attrs, "f": func_attr("f")})
    b = GraphBuilder()
    for function in (*outer.graph_def().library.function, function_of("g", outer.graph_def(), ["v:0"], ["inner:0"])):
        b.function(function)
    b.op("PartitionedCall", [b.placeholder("x", "float32")], name="outer", attrs={**attrs, "f": func_attr("g")})
    parts = cut(b, "cpu:1", feeds=["x"], targets=["outer"])
    with pytest.raises(InvalidArgumentError, match=words):
        simulate(parts, "cpu:1", shapes=given)


def loop(limit: int) -> GraphBuilder:
    """One product per iteration."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", (SIDE, SIDE))
    n = b.constant(limit) if limit else b.op("Cast", b.op("Sum", x, [0, 1]), DstT="int32")[0]
    _, y = while_loop(
        b, lambda i, _: b.op("Less", i, n), lambda i, value: (i + 1, products(b, value, 1)), [0, x], name="w"
    )
    b.identity(y, name="y")
    return b


def test_a_loop_takes_the_time_of_its_iterations() -> None:
    """Ten products: 134 ms; an event says in which iteration it happened."""
    timeline = step(loop(10))
    assert round(timeline.makespan_ns / 1e6) == 134
    runs = [event for event in timeline.events if event.op == "MatMul"]
    assert sum(event.runs for event in runs) == 10
    assert runs[0].iteration == "w/while_context:0"
    assert timeline.find("y").iteration == ""


def test_a_count_is_given_where_it_depends_on_values() -> None:
    """The error lists the flag; the count may be any number."""
    with pytest.raises(InvalidArgumentError, match=r"--trips w/while_context=N"):
        step(loop(0))
    for count in (0, 1, 7):
        timeline = step(loop(0), trip_counts={"w/while_context": count})
        assert sum(event.runs for event in timeline.events if event.op == "MatMul") == count


def nested(inner_limit: bool) -> GraphBuilder:
    """A loop of three, in it a loop that runs 0, 1, 2 times, or as often as is fed; both read x from outside."""
    b = GraphBuilder()
    x, n = b.placeholder("x", "float32", (8, 8)), b.placeholder("n", "int32", ())

    def body(i: Tensor, value: Tensor) -> list[Tensor]:
        limit = i if inner_limit else n
        inner = while_loop(
            b, lambda j, _: b.op("Less", j, limit), lambda j, y: [j + 1, b.op("MatMul", y, x)], [0, value], name="inner"
        )
        return [i + 1, inner[1]]

    b.identity(while_loop(b, lambda i, _: b.op("Less", i, 3), body, [0, x], name="outer")[1], name="y")
    return b


@pytest.mark.parametrize(("inner_limit", "given"), [(True, None), (False, [0, 1, 2]), (False, np.arange(3))])
def test_a_list_has_a_count_per_iteration_of_the_loop_around(inner_limit: bool, given: object) -> None:
    """None for the last pass of that loop, which only finds its end, though tensors enter the inner one."""
    parts = cut(nested(inner_limit), "cpu:1", feeds=["x", "n"], fetches=["y"])
    counts = {} if given is None else {"outer/inner/while_context": given}
    timeline = simulate(parts, "cpu:1", trip_counts=counts)  # type: ignore[arg-type]  # an array is a sequence too
    runs = [event.iteration.replace("/while_context", "") for event in timeline.events if event.op == "MatMul"]
    assert runs == ["outer:1/outer/inner:0", "outer:2/outer/inner:0", "outer:2/outer/inner:1"]


def conditional() -> GraphBuilder:
    """Three products if p, else one."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", (SIDE, SIDE))
    p = b.op("Less", b.op("Sum", x, [0, 1]), 0.0, name="p")[0]
    (y,) = cond(b, p, lambda: products(b, x, 3), lambda: products(b, x, 1))
    b.identity(y, name="y")
    return b


@pytest.mark.parametrize(("branch", "count"), [(1, 3), (0, 1), (True, 3), (np.int64(0), 1), (np.True_, 3)])
def test_a_branch_is_given_where_it_depends_on_values(branch: int, count: int) -> None:
    """The error lists the flag; only the given branch takes time."""
    with pytest.raises(InvalidArgumentError, match=r"--branch p=K"):
        step(conditional())
    timeline = step(conditional(), branches={"p": branch})
    assert sum(event.op == "MatMul" for event in timeline.events) == count


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"trip_counts": {"w/while_contxt": 3}}, "no loop has this name; did you mean 'w/while_context'"),
        ({"trip_counts": {"w/while_context": -1}}, "must not be negative"),
        ({"trip_counts": {"w/while_context": 1.5}}, "no whole number"),
        ({"trip_counts": {"w/while_context": "3"}}, "no whole number"),
        ({"trip_counts": {"w/while_context": []}}, "0 entries"),
        ({"trip_counts": {b"w/while_context": 3}}, "is not a text"),
        ({"trip_counts": 3}, "not a mapping"),
        ({"branches": {"w": 1}}, "no conditional has this name"),
        ({"assumed_size": -1}, "at least 0"),
        ({"assumed_size": 1.5}, "must be a whole number"),
    ],
)
def test_what_does_not_fit_is_refused(given: dict[str, object], words: str) -> None:
    """The error names what is wrong with it."""
    with pytest.raises(InvalidArgumentError, match=words):
        step(loop(0), **given)


@pytest.mark.parametrize("functional", [False, True])
def test_a_list_of_branches_has_one_for_every_iteration(functional: bool) -> None:
    """A list that is too short is an error; one more than iterations is not needed, nor looked at."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", (SIDE, SIDE))
    one, two = GraphBuilder(), GraphBuilder()
    for name, inner, count in (("one", one, 1), ("two", two, 2)):
        result = products(inner, inner.placeholder("v", "float32", (SIDE, SIDE)), count)
        b.function(function_of(name, inner.graph_def(), ["v:0"], [result.name]))

    def body(i: Tensor, value: Tensor) -> list[Tensor]:
        p = b.op("Less", b.op("Sum", value, [0, 1]), 0.0, name="p")[0]
        if not functional:
            return [i + 1, *cond(b, p, lambda: products(b, value, 2), lambda: products(b, value, 1))]
        branches = {"then_branch": func_attr("two"), "else_branch": func_attr("one")}
        attrs = {"Tcond": "bool", "Tin": ["float32"], "Tout": ["float32"], **branches}
        return [i + 1, b.op("If", p, [value], attrs=attrs, name="if")[0]]

    b.identity(while_loop(b, lambda i, _: b.op("Less", i, 3), body, [0, x], name="w")[1], name="y")
    name = "w/if" if functional else "w/p"
    timeline = step(b, branches={name: [1, 0, 1]})
    assert sum(event.op == "MatMul" for event in timeline.events) == 5
    for short in ([1, 0], [1], []):
        with pytest.raises(InvalidArgumentError, match=rf"--branch {name}: {len(short)} entries"):
            step(b, branches={name: short})


def test_a_branch_that_does_not_exist_is_refused() -> None:
    """The branches are listed."""
    with pytest.raises(InvalidArgumentError, match=r"0 \(else\) and 1 \(then\)"):
        step(conditional(), branches={"p": 2})


def test_all_that_is_missing_is_listed_at_once() -> None:
    """Counts and branches, those in functions by the path of calls."""
    inner = GraphBuilder()
    x = inner.placeholder("x", "float32", (SIDE, SIDE))
    p = inner.op("Less", inner.op("Sum", x, [0, 1]), 0.0, name="p")[0]
    (y,) = cond(inner, p, lambda: products(inner, x, 1), lambda: x)
    graph_def = loop(0).graph_def()
    b = GraphBuilder()
    b.function(function_of("f", inner.graph_def(), ["x:0"], [y.name]))
    attrs = {"Tin": ["float32"], "Tout": ["float32"], "f": func_attr("f")}
    b.op("PartitionedCall", [b.placeholder("x", "float32", (SIDE, SIDE))], name="call", attrs=attrs)
    added = b.graph_def()
    graph_def.node.extend(node for node in added.node if node.name == "call")
    graph_def.library.CopyFrom(added.library)
    parts = cut(graph_def, "cpu:1", feeds=["x"], fetches=["y", "call"])
    with pytest.raises(InvalidArgumentError, match=r"--trips w/while_context=N --branch call/p=K"):
        simulate(parts, "cpu:1")
    given = {"trip_counts": {"w/while_context": 2}, "branches": {"call/p": 1}}
    assert sum(event.op == "MatMul" for event in simulate(parts, "cpu:1", **given).events) == 3  # type: ignore[arg-type]  # one of each


def test_sizes_assumed_in_a_body_are_listed() -> None:
    """By the names that their nodes have in the step."""
    b = GraphBuilder()
    b.op("Neg", b.op("Unique", b.placeholder("x", "float32", (8,)), name="u")[0], name="y")
    body = function_of("f", b.graph_def(), ["x:0"], ["y:0"])
    call = calling("PartitionedCall", body, f=func_attr("f")).graph_def()
    parts = cut(call, "cpu:1", feeds=["x0"], fetches=["c"])
    timeline = simulate(parts, "cpu:1", feeds={"x0": (8,)}, assumed_size=5)
    assert ("c/u", "shape of output 0", (5,)) in [tuple(assumption) for assumption in timeline.assumed]


def test_a_step_beyond_the_clock_is_refused() -> None:
    """Sizes that no machine has are named as the cause."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", (1 << 30, 1 << 30))
    b.op("MatMul", x, x, name="y")
    with pytest.raises(InvalidArgumentError, match="above 292 years"):
        simulate(cut(b, "cpu:1", feeds=["x"], targets=["y"]), "cpu:1")


def test_a_trace_that_is_not_there_is_an_error_of_ours() -> None:
    """It names the file."""
    b = GraphBuilder()
    b.op("Neg", b.placeholder("x", "float32", (2,)), name="y")
    with pytest.raises(NotFoundError, match=r"'nowhere\.pb' cannot be read"):
        simulate(cut(b, "cpu:1", feeds=["x"], fetches=["y"]), "cpu:1", trace="nowhere.pb")
