"""The nodes that an If becomes keep its colocation where TensorFlow 2.21 keeps it; those of a Case do not."""

from __future__ import annotations

import numpy as np
import pytest

from partita.actors import open_session
from partita.graph.builder import GraphBuilder
from partita.graph.graphdef.importer import graph_def_to_graph
from partita.graph.passes.lower_functional import lower_functional
from partita.graph.protos import AttrValue, GraphDef, NameAttrList
from tests.function_defs import LOWER, function_of

GROUP = [b"loc:@x"]


def conditional(op: str) -> GraphDef:
    b = GraphBuilder()
    negative = b.op("Neg", b.placeholder("a", "float32", ()), name="negative")
    body = function_of("f", b.graph_def(), ["a:0"], [negative[0].name])
    b = GraphBuilder()
    b.function(body)
    x = b.constant(np.float32(2), name="x")
    f = NameAttrList(name="f")
    attrs = {"then_branch": f, "else_branch": f} if op.endswith("If") else {"branches": [f, f]}
    chosen = b.constant(np.bool_(True) if op.endswith("If") else np.int32(1), name="chosen")
    types = {"Tin": ["float32"], "Tout": ["float32"], "_class": GROUP, LOWER: AttrValue(b=True)}
    b.op(op, chosen, [x], name="y", attrs={**attrs, **types})
    return b.graph_def()


@pytest.mark.parametrize("op", ["If", "StatelessIf", "Case", "StatelessCase"])
async def test_the_predicate_and_the_outputs_of_an_if_stay_where_it_was_put(op: str) -> None:
    graph = lower_functional(graph_def_to_graph(conditional(op)))
    grouped = {node.name.split("/")[1] for node in graph.op_nodes() if node.attrs.get("_class") == tuple(GROUP)}
    is_if = op.endswith("If")
    assert grouped == ({"switch_pred", "pivot_f", "pivot_t", "x", "output"} if is_if else set())
    async with open_session(conditional(op), "cpu:2") as session:
        assert (await session.run("y:0"))[0] == -2
