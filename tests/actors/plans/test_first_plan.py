"""The first graph of a process gets the plan that a later one gets: what is loaded already decides nothing."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

import pytest

from partita.scenarios.cli import main
from tests.conformance.corpus import COMMITTED
from tests.fresh import fresh_process

EXAMPLES = Path(__file__).parents[3] / "scenarios" / "examples"
# With sums, transposes, concatenations, slices ...: kernels that have a form for constant inputs, of several families.
GRAPHS = [
    [EXAMPLES / "two_gpus.pbtxt", "--feed", "x", "--fetch", "total"],
    [EXAMPLES / "mlp.pb"],
    [COMMITTED / "casts/shapes_int64_gpu/graph.pb"],
    [COMMITTED / "control_flow/while_body12_n7/graph.pb"],
    [COMMITTED / "elementary/empty_and_scalar/graph.pb"],
    [COMMITTED / "epochs/rand_n200_d3_asap/graph.pb"],
]


def plans(arguments: list[str], times: int) -> list[str]:
    """What `partita show --stage plan` prints, so many times."""
    texts = []
    for _ in range(times):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            assert main(["show", *arguments, "--stage", "plan"]) == 0
        texts.append(out.getvalue())
    return texts


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: "/".join(Path(graph[0]).parts[-3:]))
def test_the_first_and_the_second_plan_are_equal(graph: list[str | Path]) -> None:
    """In a process of its own, and to that of this process, which has loaded whatever earlier tests did."""
    arguments = list(map(str, graph))
    first, second = fresh_process(plans, arguments, 2)
    assert "segment" in first
    assert first == second == plans(arguments, 1)[0]
