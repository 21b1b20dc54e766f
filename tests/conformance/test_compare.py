"""The comparer accepts two results of TensorFlow for one graph, and reports every kind of difference at its level."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, strategies as st

from partita.graph.protos import GraphDef
from tests.conformance.compare import Partitions, compare
from tests.conformance.corpus import Case, cases

_GENERATED = re.compile(r"(?P<caret>\^?)(?P<stem>.*/_)(?P<number>\d+)(?P<port>(?::\d+)?)")
FAMILIES = ("elementary", "random", "models")
SMALL = next(case for case in cases("random") if case.path.endswith("rand_n60_d3_s1008"))


def original_names(case: Case) -> set[str]:
    """Names of the nodes of the input graph."""
    return {node.name for node in case.graph_def().node}


def renumbered(partitions: Partitions, original: set[str]) -> Partitions:
    """The same graphs with other numbers in generated names, as another run of the counter gives them."""

    def rename(text: str) -> str:
        match = _GENERATED.fullmatch(text)
        if match is None or match["stem"] + match["number"] in original:
            return text
        return f"{match['caret']}{match['stem']}{7 * int(match['number']) + 3}{match['port']}"

    copies = {device: GraphDef.FromString(graph.SerializeToString()) for device, graph in partitions.items()}
    for graph in copies.values():
        for node in graph.node:
            node.name = rename(node.name)
            node.input[:] = [rename(text) for text in node.input]
    return copies


@pytest.mark.parametrize("case", [case for family in FAMILIES for case in cases(family)], ids=lambda case: case.path)
def test_session_dump_equals_raw_partitions(case: Case) -> None:
    """TensorFlow's session dump and raw partitions agree at the level of the case."""
    step = case.steps()[-1]
    result = compare(step.dump(), step.raw(), original_names(case))
    assert result.agrees(case.level), result.report(case.level)


def test_other_counter_values_agree_up_to_names() -> None:
    """Renumbered generated names differ at L3 only."""
    expected, original = SMALL.steps()[0].raw(), original_names(SMALL)
    result = compare(expected, renumbered(expected, original), original)
    assert result.agrees("L2"), result.report("L2")
    assert result.differences["L3"]


@given(st.data())
def test_a_lost_or_swapped_input_is_noticed(data: st.DataObject) -> None:
    """Removing or exchanging inputs of any node is a difference at L2, also after renumbering."""
    expected, original = SMALL.steps()[0].raw(), original_names(SMALL)
    changed = renumbered(expected, original)
    node = data.draw(st.sampled_from([node for graph in changed.values() for node in graph.node if len(node.input)]))
    lost = data.draw(st.sampled_from(sorted(set(node.input))))
    node.input[:] = [text for text in node.input if text != lost]
    assert not compare(expected, changed, original).agrees("L2")


@given(st.data())
def test_a_changed_attr_is_noticed(data: st.DataObject) -> None:
    """Removing an attr without a default is a difference at L3 on every node."""
    expected, original = SMALL.steps()[0].raw(), original_names(SMALL)
    changed = {device: GraphDef.FromString(graph.SerializeToString()) for device, graph in expected.items()}
    node = data.draw(st.sampled_from([node for graph in changed.values() for node in graph.node if "T" in node.attr]))
    del node.attr["T"]
    assert not compare(expected, changed, original).agrees("L3")


@given(st.data())
def test_a_moved_or_lost_node_is_noticed(data: st.DataObject) -> None:
    """Another device, another op, or a missing node is a difference at L1."""
    expected, original = SMALL.steps()[0].raw(), original_names(SMALL)
    changed = renumbered(expected, original)
    device = data.draw(st.sampled_from(sorted(changed)))
    index = data.draw(st.integers(0, len(changed[device].node) - 1))
    match data.draw(st.sampled_from(("move", "rename the op", "lose"))):
        case "move":
            changed[device].node[index].device += "1"
        case "rename the op":
            changed[device].node[index].op += "Grad"
        case _:
            del changed[device].node[index]
    assert not compare(expected, changed, original).agrees("L1")


def test_noise_does_not_count() -> None:
    """Order of nodes and control inputs, explicit defaults, `_Xla` attrs and `x:0` for `x` are no differences."""
    expected, original = SMALL.steps()[0].raw(), original_names(SMALL)
    changed = {device: GraphDef(versions=graph.versions) for device, graph in expected.items()}
    for device, graph in expected.items():
        for node in reversed(graph.node):
            copy = changed[device].node.add()
            copy.CopyFrom(node)
            data = [text if ":" in text else f"{text}:0" for text in node.input if not text.startswith("^")]
            control = [text for text in reversed(node.input) if text.startswith("^")]
            copy.input[:] = [*data, *control, *control]
            copy.attr["_XlaHasReferenceVars"].b = False
            if node.op == "MatMul":
                copy.attr.pop("transpose_a", None)
    assert compare(expected, changed, original).agrees("L3")
