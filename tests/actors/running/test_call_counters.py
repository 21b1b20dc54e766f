"""Print in a function counts the calls of each caller apart, so called functions print what inlined ones do."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest

from partita.actors import open_session
from partita.graph.builder import GraphBuilder
from partita.graph.ops.record import record_of
from partita.graph.protos import ConfigProto, NameAttrList, OptimizerOptions
from tests.function_defs import function_of
from tests.strategies import cpu

INLINED = ConfigProto()
INLINED.graph_options.optimizer_options.do_function_inlining = True
INLINED.graph_options.optimizer_options.opt_level = OptimizerOptions.L0  # as a virtual clock wants it


@pytest.mark.parametrize("second", [cpu(0), cpu(1)])
@pytest.mark.parametrize("config", [ConfigProto(), INLINED], ids=["called", "inlined"])
@pytest.mark.parametrize("clock", ["real", "virtual"])
async def test_each_caller_counts_for_itself(
    capfd: pytest.CaptureFixture[str], second: str, config: ConfigProto, clock: Literal["real", "virtual"]
) -> None:
    """One line for each of two calls in the first step, none in the second."""
    inner, b = GraphBuilder(), GraphBuilder()
    x = inner.placeholder("x", "float32", ())
    printed = inner.op("Print", x, [x], message=b"x = ", first_n=1, name="print")
    b.function(function_of("f", inner.graph_def(), ["x:0"], [printed[0].name], ["print"]))
    attrs = {"Tin": ["float32"], "Tout": ["float32"], "f": NameAttrList(name="f")}
    for number, device in enumerate((cpu(0), second)):
        b.op("StatefulPartitionedCall", [b.constant(float(number))], name=f"c{number}", device=device, attrs=attrs)
    lines = []
    async with open_session(b.graph_def(), "cpu:2", config=config, clock=clock) as session:
        for _ in range(2):
            assert await session.run(["c0:0", "c1:0"]) == [0, 1]
            lines.append(sorted(capfd.readouterr().err.splitlines()))
    assert lines == [["x = [0]", "x = [1]"], []]


@pytest.mark.parametrize("op", ["Print", "ShuffleDataset", "RandomDataset", "FractionalMaxPool", "RandomUniform"])
def test_the_record_says_which_ops_keep_something_for_each_node(op: str) -> None:
    """Whatever kind of state they have."""
    assert record_of(op).is_per_node


async def test_poolings_that_draw_anew_have_generators_apart() -> None:
    """Two nodes without state and with equal attrs: the second does not go on where the first is."""
    b = GraphBuilder()
    x = b.constant(np.arange(400, dtype=np.float32).reshape(1, 20, 20, 1))
    ratio = {"pooling_ratio": [1.0, 1.5, 1.5, 1.0], "pseudo_random": True}
    for number in range(2):
        b.op("FractionalMaxPool", x, name=f"p{number}", attrs=ratio)
    alone: list[list[int]] = []
    together: list[list[int]] = []
    for fetches, drawn in ((["p0:1"], alone), (["p0:1", "p1:1"], together)):
        async with open_session(b.graph_def(), "cpu:1", seed=5) as session:
            drawn += [(await session.run(fetches))[0].tolist() for _ in range(3)]
    assert alone == together
