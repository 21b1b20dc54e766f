"""Law of keys: no key is sent twice in one step, however many calls of one function are under way.

Calls of one function over two devices, from nodes on any devices: beside each other and in a function around, which
other devices call too. Every call adds 1; with keys that two calls share, they would take each other's tensors.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from partita.actors import open_session
from partita.graph.builder import GraphBuilder
from partita.graph.builder.handles import Tensor
from partita.graph.protos import GraphDef, NameAttrList
from partita.rendezvous.key import call_number, loop_number
from tests.function_defs import function_of
from tests.rendezvous.keys import no_key_sent_twice
from tests.runs import HARD_PLACEMENT, cpus
from tests.strategies import cpu

DEVICES = 4
Callers = list[tuple[str, int]]


def adds_one(b: GraphBuilder, callers: Callers, x: Tensor) -> list[Tensor]:
    """Calls from devices: of 10 x, of 20 x, ..."""
    results = []
    for number, (function, device) in enumerate(callers, 1):
        scaled = b.op("Mul", x, b.constant(np.float32(10 * number)), device=cpu(device))[0]
        attrs = {"Tin": ["float32"], "Tout": ["float32"], "f": NameAttrList(name=function)}
        results.append(b.op("StatefulPartitionedCall", [scaled], attrs=attrs, device=cpu(device))[0])
    return results


def graph_of(inner: Callers, outer: Callers) -> tuple[GraphDef, list[str]]:
    """`hop` adds 1 over two devices; `around` is the sum of `inner` calls; the graph makes the `outer` calls."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", ())
    there = b.op("Neg", x, device=cpu(2))[0]
    back = b.op("Neg", there, device=cpu(3))[0]
    more = b.op("AddV2", back, b.constant(np.float32(1)), device=cpu(2))[0]
    hop = function_of("hop", b.graph_def(), ["x:0"], [more.name])
    b = GraphBuilder()
    b.function(hop)
    x = b.placeholder("x", "float32", ())
    total = b.op("AddN", adds_one(b, inner, x))[0]
    around = function_of("around", b.graph_def(), ["x:0"], [total.name])
    b = GraphBuilder()
    b.function(hop)
    b.function(around)
    x = b.placeholder("x", "float32", (), device=cpu(0))
    fetches = [tensor.name for tensor in adds_one(b, outer, x)]
    return b.graph_def(), fetches


def calls(functions: list[str]) -> st.SearchStrategy[Callers]:
    caller = st.tuples(st.sampled_from(functions), st.integers(0, DEVICES - 1))
    return st.lists(caller, min_size=1, max_size=4)


@pytest.mark.parametrize("clock", ["real", "virtual"])
@settings(max_examples=20)
@given(inner=calls(["hop"]), outer=calls(["hop", "around"]))
async def test_no_key_is_sent_twice(clock: Literal["real", "virtual"], inner: Callers, outer: Callers) -> None:
    """And every call gets its own tensors."""
    graph_def, fetches = graph_of(inner, outer)
    expected = []
    for number, (function, _) in enumerate(outer, 1):
        x = 10.0 * number
        sums = sum(10 * k * x + 1 for k in range(1, len(inner) + 1))
        expected.append(x + 1 if function == "hop" else sums)
    with no_key_sent_twice() as sent:
        async with open_session(graph_def, cpus(DEVICES), config=HARD_PLACEMENT, clock=clock) as session:
            assert await session.run(fetches, {"x": np.float32(1)}) == expected
    assert any(sent.values()) is (clock == "real")  # on the virtual clock the player passes tensors on, without keys


def test_frames_of_loops_and_calls_are_told_apart_whatever_their_names_are() -> None:
    numbers = [
        loop_number("", "f;3"),
        loop_number(";f", "3"),
        call_number("", "f", 3, ""),
        call_number("", "f;3", 3, ""),
        call_number("", "g", 3, ""),
        call_number("", "f", 3, ":1"),
        call_number("", "f", 31, ""),
        call_number("7:0", "f", 3, ""),
    ]
    assert len(set(numbers)) == len(numbers)
