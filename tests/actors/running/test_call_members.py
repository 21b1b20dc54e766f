"""Each member of `Call`, for a built-in kernel and one from outside: compiled, interpreted, on the virtual clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np
import pytest

from partita.actors import open_session
from partita.actors.sessions.session import Session
from partita.actors.sessions.whole_requests import InterpretedRequest
from partita.devices.kernels import registry
from partita.devices.kernels.functions import Scope
from partita.devices.kernels.registry import Call, Construction, Start, deferred_kernel
from partita.errors import AbortedError, PartitaError
from partita.graph.builder import GraphBuilder
from partita.graph.ops import registry as ops
from partita.graph.ops.registration import register_op
from partita.graph.protos import GraphDef, NameAttrList
from tests.actors.waiting_ops import defer
from tests.function_defs import function_of

Body = Callable[..., None]
BUILT_IN = "Abs"  # its kernel is replaced: the registry counts it as one of the package
WAYS: list[tuple[Literal["real", "virtual"], bool]] = [("real", False), ("real", True), ("virtual", False)]
OUTSIDE = "CallProbe"
DECLARED = f"{OUTSIDE}\ninput x: float\noutput y: float\nstateful"
in_all_ways = pytest.mark.parametrize(("clock", "is_interpreted"), WAYS, ids=["compiled", "interpreted", "virtual"])


class Probe:
    """What the kernel does with its call and its input: `body`, which the test sets."""

    def __init__(self, op: str) -> None:
        self.op = op
        self.body: Body = lambda call, x: call.done(x)

    def factory(self, _node: Construction) -> Start:
        return self.body


def probing(op: str, count: int, *, is_interpreted: bool) -> GraphDef:
    """Nodes p0, p1, ... of x; a fetch `inside` of a loop, which only the interpreter runs, if that is wanted."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", ())
    for number in range(count):
        b.op(op, x, name=f"p{number}")
    if is_interpreted:
        frame = {"frame_name": "f"}
        e = b.op("Enter", x, attrs=frame)
        m = b.op("Merge", [e[0], e[0]], name="m")
        c = b.op("LoopCond", b.op("Less", m[0], e[0])[0])
        s = b.op("Switch", m[0], c[0])
        b.op("NextIteration", s[1], name="n")
        b.op("Identity", s[0], name="inside")
        graph_def = b.graph_def()
        next(node for node in graph_def.node if node.name == "m").input[1] = "n"
        return graph_def
    return b.graph_def()


async def ran(session: Session, count: int, *, is_interpreted: bool) -> list[float]:
    """Runs a step; checks that the interpreter runs it only if that is wanted."""
    fetches = [*(f"p{number}:0" for number in range(count)), *(["inside:0"] if is_interpreted else [])]
    assert isinstance(session.prepare("x", fetches).whole, InterpretedRequest) == is_interpreted
    values = await session.run(fetches, {"x": np.float32(-2)})
    return [float(value) for value in values[:count]]


@pytest.fixture(params=[BUILT_IN, OUTSIDE])
def probe(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Probe]:
    """A deferred kernel, in place of a built-in one and registered as a user registers it."""
    probe = Probe(request.param)
    if probe.op == BUILT_IN:
        defer(monkeypatch, probe.factory, BUILT_IN)
        yield probe
        return
    register_op(DECLARED, waits=True)
    deferred_kernel(OUTSIDE)(probe.factory)
    yield probe
    del registry._FACTORIES[OUTSIDE], ops._signatures[OUTSIDE]


@in_all_ways
async def test_done_gives_the_outputs_and_ends_the_call_once(
    probe: Probe, clock: Literal["real", "virtual"], is_interpreted: bool
) -> None:
    """`is_ended` tells; what comes later is ignored, and no cancellation is called."""
    ends: list[bool] = []

    def body(call: Call, x: Any) -> None:
        call.on_cancel(lambda: ends.append(False))
        ends.append(call.is_ended)
        call.done(x + 1)
        call.done(x)
        call.fail(AbortedError("too late"))
        ends.append(call.is_ended)

    probe.body = body
    async with open_session(probing(probe.op, 1, is_interpreted=is_interpreted), clock=clock) as session:
        assert await ran(session, 1, is_interpreted=is_interpreted) == [-1]
    assert ends == [False, True]


@in_all_ways
async def test_fail_fails_the_step_and_cancels_the_other_calls(
    probe: Probe, clock: Literal["real", "virtual"], is_interpreted: bool
) -> None:
    """The error names the node; `on_cancel` calls at once what comes after the failure."""
    kept: list[Call] = []
    cancelled: list[str] = []

    def body(call: Call, _x: Any) -> None:
        kept.append(call)
        call.on_cancel(lambda: cancelled.append("waiting"))
        if len(kept) == 2:
            call.fail(AbortedError("enough"))

    probe.body = body
    async with open_session(probing(probe.op, 2, is_interpreted=is_interpreted), clock=clock) as session:
        with pytest.raises(AbortedError, match="enough") as caught:
            await ran(session, 2, is_interpreted=is_interpreted)
    assert caught.value.op == probe.op
    assert cancelled == ["waiting"]
    kept[0].on_cancel(lambda: cancelled.append("late"))
    assert cancelled == ["waiting", "late"]
    assert all(call.is_ended for call in kept)


@in_all_ways
async def test_the_step_is_one_object_for_all_its_calls(
    probe: Probe, clock: Literal["real", "virtual"], is_interpreted: bool
) -> None:
    """And another one in the next step."""
    steps: list[object] = []

    def body(call: Call, x: Any) -> None:
        steps.append(call.step)
        call.done(x)

    probe.body = body
    async with open_session(probing(probe.op, 2, is_interpreted=is_interpreted), clock=clock) as session:
        for _ in range(2):
            await ran(session, 2, is_interpreted=is_interpreted)
    assert steps[0] is steps[1] is not steps[2] is steps[3]


@in_all_ways
async def test_after_calls_back_in_the_order_of_time(
    probe: Probe, clock: Literal["real", "virtual"], is_interpreted: bool, autojump_clock: object
) -> None:
    """Seconds of trio's clock, or of simulated time."""
    rang: list[str] = []

    def body(call: Call, x: Any) -> None:
        def last() -> None:
            rang.append("second")
            call.done(x)

        call.after(20.0, last)
        call.after(10.0, lambda: rang.append("first"))

    probe.body = body
    async with open_session(probing(probe.op, 1, is_interpreted=is_interpreted), clock=clock) as session:
        assert await ran(session, 1, is_interpreted=is_interpreted) == [-2]
    assert rang == ["first", "second"]


@in_all_ways
async def test_pause_is_asked_until_time_is_up_and_then_resumes(
    probe: Probe, clock: Literal["real", "virtual"], is_interpreted: bool
) -> None:
    """A kernel of many small parts does each of them once, whether it was interrupted or not."""
    done: list[int] = []

    def body(call: Call, x: Any) -> None:
        def work() -> None:
            while len(done) < 200:
                done.append(len(done))
                if call.pause(work):
                    return
            call.done(x)

        work()

    probe.body = body
    graph_def = probing(probe.op, 1, is_interpreted=is_interpreted)
    async with open_session(graph_def, clock=clock, budget_s=1e-6) as session:
        assert await ran(session, 1, is_interpreted=is_interpreted) == [-2]
    assert done == list(range(200))


@pytest.mark.parametrize("clock", ["real", "virtual"])
async def test_function_calls_what_an_attr_names(clock: Literal["real", "virtual"]) -> None:
    """With the arguments that the kernel gives; an error of it goes to `failed`, and the step goes on."""
    seen: list[str] = []

    def factory(node: Construction) -> Start:
        named = node.function("f")

        def start(call: Call, x: Any) -> None:
            def failed(error: PartitaError) -> None:
                seen.append(error.code)
                call.done(x)

            call.function(named, Scope())([x], lambda results: call.done(*results), failed)

        return start

    register_op("CallsProbe\ninput x: float\noutput y: float\nattr f: func\nstateful", names_functions=True, waits=True)
    deferred_kernel("CallsProbe")(factory)
    b = GraphBuilder()
    for name, op in (("negated", "Neg"), ("checked", "CheckNumerics")):
        inner = GraphBuilder()
        attrs = {"message": b"no"} if op == "CheckNumerics" else {}
        result = inner.op(op, inner.placeholder("x", "float32", ()), attrs=attrs)
        b.function(function_of(name, inner.graph_def(), ["x:0"], [result[0].name]))
        x = b.constant(np.float32("nan" if attrs else 2))
        b.op("CallsProbe", x, name=name, attrs={"f": NameAttrList(name=name)})
    try:
        async with open_session(b.graph_def(), clock=clock) as session:
            negated, checked = await session.run(["negated:0", "checked:0"])
    finally:
        del registry._FACTORIES["CallsProbe"], ops._signatures["CallsProbe"]
    assert negated == -2
    assert np.isnan(checked)
    assert seen == ["INVALID_ARGUMENT"]
