"""Import: orders, options, errors, and that a failed import changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest
from google.protobuf import text_format
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError, NotFoundError, PartitaError, UnimplementedError
from partita.graph import Graph, GraphDef, ImportOptions, graph_def_to_graph, import_graph_def
from partita.graph.attrs import encode
from partita.graph.protos import NodeDef
from partita.graph.protos.full_type_pb2 import FullTypeDef, FullTypeId
from tests.graph.graphdef.lines import edges, nodes
from tests.strategies import GraphCase, graph_cases

_FLOAT, _INT32 = encode("float32", "type"), encode("int32", "type")


def test_nodes_come_inputs_first_and_lowest_index_first() -> None:
    """A node is created once its inputs are, and of all ready nodes the one that stands first in the file."""
    graph = graph_def_to_graph(nodes("c = Neg(b)", "d = Placeholder()", "b = Neg(a)", "a = Placeholder()"))
    assert [node.name for node in graph.op_nodes()] == ["d", "a", "b", "c"]


def test_control_edges_are_sorted_by_name_and_single() -> None:
    """Edges of a node: data by port, then control inputs by name, repeated ones dropped."""
    graph = graph_def_to_graph(
        nodes("x = Placeholder()", "q = NoOp()", "p = NoOp()", "y = Neg(x, ^q, ^p, ^q)", "z = Neg(y:0)")
    )
    assert edges(graph) == ["x:0->y:0", "p:-1->y:-1", "q:-1->y:-1", "y:0->z:0"]


def test_a_loop_closes_with_the_last_edge() -> None:
    """The edge from NextIteration to its Merge comes after all others; the Merge is ready without it."""
    graph = graph_def_to_graph(
        nodes("x = Placeholder()", "m = Merge(x, next)", "n = Neg(m)", "next = NextIteration(n)"),
        allow_internal_names=True,
    )
    assert edges(graph)[-1] == "next:0->m:1"
    assert [node.name for node in graph.op_nodes()] == ["x", "m", "n", "next"]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["b = Neg(nope)"], "Node 'b': Unknown input node 'nope'"),
        (["b = NoOp(^nope)"], r"Unknown input node '\^nope'"),
        (["a = NoOp()", "a = NoOp()"], "Node 'a' is not unique"),
        (["a = Neg(b)", "b = Neg(a)"], "2 nodes in a cycle"),
        (["x = Placeholder()", "a = NoOp(^x, x)"], "Control dependencies must come after regular dependencies"),
        (["^a = NoOp()"], "Node name contains invalid characters"),
        (["_a = NoOp()"], "Node name contains invalid characters"),
        ([" = NoOp()"], "Node '': Node name contains invalid characters"),
        (["x = Placeholder()", "b = Neg(x:2)"], "Connecting to invalid output 2 of source node x which has 1 outputs"),
        (["p = NoOp()", "b = Neg(p)"], "invalid output 0"),
        (
            ["x = Placeholder()", "a = NoOp(x)"],
            "Input 0 of node a does not exist|NodeDef expected inputs .. do not match 1 inputs",
        ),
        (["a = (b)"], "does not specify an operation"),
    ],
)
def test_bad_graphs_are_named(lines: list[str], message: str) -> None:
    """Every malformed node is InvalidArgument with TensorFlow's words, and an import changes nothing."""
    for build in (graph_def_to_graph, lambda graph_def: import_graph_def(graph_def, Graph())):
        with pytest.raises(InvalidArgumentError, match=message):
            build(nodes(*lines))


def test_unknown_ops_are_not_found() -> None:
    """An op that no registry knows is NotFound and names node and op."""
    with pytest.raises(NotFoundError, match="Op type not registered 'Nonsense'") as caught:
        graph_def_to_graph(nodes("a = Nonsense()"))
    assert (caught.value.node, caught.value.op) == ("a", "Nonsense")


def test_types_must_agree() -> None:
    """An edge between different element types is InvalidArgument and names both."""
    graph_def = nodes("x = Placeholder()", "y = Neg(x)")
    graph_def.node[1].attr["T"].CopyFrom(_INT32)
    with pytest.raises(
        InvalidArgumentError, match=r"Input 0 of node y was passed float from x:0 incompatible .* int32"
    ):
        graph_def_to_graph(graph_def)


def test_only_an_import_validates_nodes() -> None:
    """A session accepts errors that no edge depends on, here a constant without value; an import refuses them."""
    graph_def = GraphDef()
    graph_def.node.add(name="c", op="Const").attr["dtype"].CopyFrom(_FLOAT)
    assert graph_def_to_graph(graph_def).num_nodes == 3
    with pytest.raises(InvalidArgumentError, match="NodeDef missing attr 'value' from Op<name=Const"):
        import_graph_def(graph_def, Graph())


def test_removed_ops_are_unimplemented() -> None:
    """An op that was removed before the graph's version is Unimplemented at import."""
    graph_def = GraphDef()
    graph_def.versions.producer = 2474
    node = graph_def.node.add(name="a", op="BatchNormWithGlobalNormalization", input=["x"] * 5)
    node.attr["T"].CopyFrom(_FLOAT)
    node.attr["variance_epsilon"].f = 0.1
    node.attr["scale_after_normalization"].b = True
    graph_def.node.add(name="x", op="Placeholder").attr["dtype"].CopyFrom(_FLOAT)
    with pytest.raises(UnimplementedError, match="is not available in GraphDef version"):
        import_graph_def(graph_def, Graph())


def test_versions_merge_at_import_and_are_taken_over_by_conversion() -> None:
    """Import takes the lower producer, the higher consumer, all bad consumers; conversion takes them as they are."""
    graph_def = nodes("x = Placeholder()")
    graph_def.versions.producer, graph_def.versions.min_consumer = 100, 12
    graph_def.versions.bad_consumers.append(7)
    graph = Graph()
    import_graph_def(graph_def, graph)
    assert graph.versions == graph_def_to_graph(graph_def).versions
    assert (graph.versions.producer, graph.versions.min_consumer, graph.versions.bad_consumers) == (100, 12, (7,))
    assert graph_def_to_graph(GraphDef()).versions.producer == 0


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("producer", -1, "below min producer"),
        ("min_consumer", 99999, "above current"),
        ("bad_consumers", [2474], "disallows"),
    ],
)
def test_versions_that_must_not_be_read(field: str, value: object, message: str) -> None:
    """A graph for other programs than this one is refused before anything is read."""
    text = f"versions {{ {field}: {value} }}"
    with pytest.raises(InvalidArgumentError, match=message):
        graph_def_to_graph(text_format.Parse(text, GraphDef()))


def test_a_prefix_goes_before_names_inputs_and_groups() -> None:
    """Names, inputs and colocation groups of imported nodes get the prefix; return handles follow the renaming."""
    graph_def = nodes("x = Placeholder()", "y = Neg(x)")
    graph_def.node[1].attr["_class"].list.s.append(b"loc:@x")
    graph = Graph()
    results = import_graph_def(graph_def, graph, ImportOptions(prefix="p", return_tensors=["y:0"], return_nodes=["x"]))
    assert [node.name for node in graph.op_nodes()] == ["p/x", "p/y"]
    assert results.return_tensors[0][0].attr("_class") == (b"loc:@p/x",)
    assert results.return_nodes[0].name == "p/x"
    with pytest.raises(InvalidArgumentError, match="already exists"):
        import_graph_def(graph_def, graph, ImportOptions(prefix="p"))
    import_graph_def(graph_def, graph, ImportOptions(prefix="p", uniquify_prefix=True))
    assert graph.find_node("p_1/x") is not None
    import_graph_def(graph_def, graph, ImportOptions(prefix="p", uniquify_names=True))
    assert graph.find_node("p/x_1") is not None
    with pytest.raises(InvalidArgumentError, match="would lead to invalid node names"):
        import_graph_def(graph_def, graph, ImportOptions(prefix="!bad"))


def test_names_that_are_scopes_are_taken() -> None:
    """A name equal to a node or to the scope of one is in use; it is made unique on request."""
    graph = Graph()
    graph.add_node("s/a", "NoOp")
    with pytest.raises(InvalidArgumentError, match="Node name 's' already exists in the Graph"):
        import_graph_def(nodes("s = NoOp()"), graph)
    import_graph_def(nodes("s = NoOp()", "s_1 = NoOp()"), graph, ImportOptions(uniquify_names=True))
    assert [node.name for node in graph.op_nodes()] == ["s/a", "s_2", "s_1"]


def test_an_input_map_feeds_existing_tensors() -> None:
    """Mapped inputs read the existing graph; nodes all of whose outputs are mapped can be left out."""
    graph = Graph()
    import_graph_def(nodes("w = Placeholder()", "c = NoOp()"), graph)
    graph_def = nodes("x = Placeholder()", "d = NoOp()", "y = Neg(x, ^d)")
    options = ImportOptions(input_map={"x:0": "w:0", "^d": "^c", "zz:0": "w:0"}, skip_mapped_nodes=True)
    results = import_graph_def(graph_def, graph, options)
    assert [node.name for node in graph.op_nodes()] == ["w", "c", "y"]
    assert edges(graph) == ["w:0->y:0", "c:-1->y:-1"]
    assert results.missing_unused_input_map_keys == ["zz:0"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (ImportOptions(input_map={"x:0": "gone:0"}), "'gone' in input_map does not exist"),
        (ImportOptions(input_map={"^x": "w:0"}), "between control edge and non-control edge"),
        (ImportOptions(control_dependencies=["gone"]), "gone"),
        (ImportOptions(return_tensors=["y:3"]), "Invalid return output 3 of node 'y', which has 1 output"),
        (ImportOptions(return_tensors=["gone:0"]), "not found in graph def"),
        (ImportOptions(return_nodes=["gone"]), "not found in graph def"),
    ],
)
def test_a_refused_import_changes_nothing(options: ImportOptions, message: str) -> None:
    """Whatever is wrong with the options, nodes, edges and versions stay as they were."""
    graph = Graph()
    import_graph_def(nodes("w = Placeholder()"), graph)
    before = graph.to_graph_def(), graph.num_edge_ids, graph.num_node_ids
    with pytest.raises(PartitaError, match=message):
        import_graph_def(nodes("x = Placeholder()", "y = Neg(x)"), graph, options)
    assert (graph.to_graph_def(), graph.num_edge_ids, graph.num_node_ids) == before


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("w:1", "Node 'y': Connecting to invalid output 1 of source node w which has 1 outputs."),
        ("_SOURCE:0", "Node 'y': Connecting to invalid output 0 of source node _SOURCE which has 0 outputs."),
        ("i:0", "Input 0 of node import/y was passed int32 from i:0 incompatible with expected float."),
    ],
)
def test_a_mapped_port_is_checked_where_it_is_read(value: str, message: str) -> None:
    """As in TensorFlow an input map may name ports that do not exist, also of the source, as long as nobody reads."""
    graph, graph_def = Graph(), nodes("w = Placeholder()", "i = Placeholder()")
    graph_def.node[1].attr["dtype"].CopyFrom(_INT32)
    import_graph_def(graph_def, graph)
    addition = nodes("x = Placeholder()", "y = Neg(x)")
    import_graph_def(addition, graph, ImportOptions(prefix="a", input_map={"x:7": value}))
    with pytest.raises(InvalidArgumentError) as refused:
        import_graph_def(addition, graph, ImportOptions(prefix="import", input_map={"x:0": value}))
    assert refused.value.message == message


def test_messages_have_the_names_that_nodes_would_get() -> None:
    """With their prefix or number, but for those that TensorFlow calls by the names of the file."""
    graph_def = nodes("A = Placeholder()", "B = Neg(A)")
    graph_def.node[1].attr["T"].CopyFrom(_INT32)
    with pytest.raises(InvalidArgumentError) as refused:
        import_graph_def(graph_def, Graph(), ImportOptions(prefix="import"))
    assert refused.value.message == (
        "Input 0 of node import/B was passed float from import/A:0 incompatible with expected int32."
    )
    del graph_def.node[1].attr["T"]
    graph = Graph()
    import_graph_def(nodes("B = NoOp()"), graph)
    with pytest.raises(InvalidArgumentError, match=r"NodeDef missing attr 'T' from .* NodeDef: {{node B_1}}"):
        import_graph_def(graph_def, graph, ImportOptions(uniquify_names=True))


def test_a_backslash_is_shown_as_it_is() -> None:
    """Names in messages are not Python's literals."""
    with pytest.raises(InvalidArgumentError) as refused:
        graph_def_to_graph(nodes("a\\b = NoOp()"))
    assert refused.value.message == r"Node 'a\b': Node name contains invalid characters"


@given(
    st.lists(st.text("a_/>-.\n\u00e9", max_size=4), max_size=4, unique=True), st.booleans()
)  # few characters, so that many names are legal and many nearly so
def test_names_are_legal_together_if_each_is_legal_alone(names: list[str], internal: bool) -> None:
    """The error of many nodes is that of the first node whose name is refused alone, whatever characters it has."""
    graph_def = GraphDef()
    for name in names:
        graph_def.node.add(name=name, op="NoOp")
    refused = [name for name in names if _refusal(GraphDef(node=[NodeDef(name=name, op="NoOp")]), internal)]
    expected = f"Node '{refused[0]}': Node name contains invalid characters" if refused else ""
    assert _refusal(graph_def, internal) == expected


def _refusal(graph_def: GraphDef, internal: bool) -> str:
    try:
        graph_def_to_graph(graph_def, allow_internal_names=internal)
    except InvalidArgumentError as error:
        return error.message
    return ""


def test_control_dependencies_run_before_what_has_no_imported_input() -> None:
    """Only nodes without imported inputs wait for the given nodes; the others wait indirectly."""
    graph = Graph()
    import_graph_def(nodes("first = NoOp()"), graph)
    options = ImportOptions(control_dependencies=["first"])
    import_graph_def(nodes("x = Placeholder()", "y = Neg(x)"), graph, options)
    assert edges(graph) == ["first:-1->x:-1", "x:0->y:0"]


def test_colocation_must_name_an_imported_node() -> None:
    """A colocation group of a node that the GraphDef lacks is refused at import."""
    graph_def = nodes("x = Placeholder()")
    graph_def.node[0].attr["_class"].list.s.append(b"loc:@gone")
    with pytest.raises(InvalidArgumentError, match="expects to be colocated with unknown node 'gone'"):
        import_graph_def(graph_def, Graph())


def test_damaged_bytes_are_refused() -> None:
    """Bytes that are no GraphDef are InvalidArgument."""
    with pytest.raises(InvalidArgumentError, match="Invalid GraphDef"):
        graph_def_to_graph(b"\xff\xff\xff")


@given(graph_cases(), st.randoms(use_true_random=False))
def test_the_order_of_the_file_does_not_decide_what_is_imported(case: GraphCase, random: object) -> None:
    """Shuffling the nodes of a file gives the same nodes with the same inputs, whatever their ids."""
    shuffled = GraphDef()
    shuffled.CopyFrom(case.graph_def)
    nodes = list(shuffled.node)
    random.shuffle(nodes)  # type: ignore[attr-defined]  # hypothesis types its random source as object
    del shuffled.node[:]
    shuffled.node.extend(nodes)
    ours = {n.name: n for n in graph_def_to_graph(shuffled).to_graph_def().node}
    theirs = {n.name: n for n in graph_def_to_graph(case.graph_def).to_graph_def().node}
    assert ours == theirs


@pytest.mark.parametrize(
    ("edges", "named"),
    [
        ([("a", "c"), ("b", "a"), ("c", "b")], "3 nodes in a cycle: a -> b -> c -> a"),
        ([("a", "a")], "1 nodes in a cycle: a -> a"),
        ([("d", "c"), ("c", "b"), ("b", "c")], "3 nodes in a cycle: c -> b -> c"),
    ],
)
def test_the_nodes_of_a_cycle_are_named_in_the_order_of_their_edges(edges: list[tuple[str, str]], named: str) -> None:
    """Not those that only wait for it."""
    graph_def = GraphDef()
    for name, source in edges:
        graph_def.node.add(name=name, op="Neg", input=[source]).attr["T"].CopyFrom(_FLOAT)
    with pytest.raises(InvalidArgumentError) as caught:
        graph_def_to_graph(graph_def)
    assert caught.value.message.startswith(named)


@given(st.integers(1, 40), st.data())
def test_a_named_cycle_is_one(count: int, data: st.DataObject) -> None:
    """Every node that is named reads from the one named before it, whatever the graph."""
    sources = [data.draw(st.integers(0, count - 1)) for _ in range(count)]
    graph_def = GraphDef()
    for k, source in enumerate(sources):
        graph_def.node.add(name=f"n{k}", op="Neg", input=[f"n{source}"]).attr["T"].CopyFrom(_FLOAT)
    with pytest.raises(InvalidArgumentError) as caught:
        graph_def_to_graph(graph_def)
    names = caught.value.message.partition(": ")[2].split(" -> ")
    if "..." not in names:
        assert names[0] == names[-1]
    for before, after in pairwise(names):
        if "..." not in (before, after):
            assert sources[int(after[1:])] == int(before[1:])


def _remarked(lines: Sequence[str]) -> GraphDef:
    """The first node has a type, the first two say what they were made from."""
    graph_def = nodes(*lines)
    graph_def.node[0].experimental_type.CopyFrom(FullTypeDef(type_id="TFT_TENSOR"))
    for i, node in enumerate(graph_def.node[:2]):
        node.experimental_debug_info.original_node_names.append(f"from{i}")
    return graph_def


@pytest.mark.parametrize("build", [graph_def_to_graph, lambda graph_def: _imported(graph_def)])
def test_what_nodes_say_of_themselves_survives(build: Callable[[GraphDef], Graph]) -> None:
    """Experimental types and debug info come through imports, copies and changes of attrs."""
    graph = build(_remarked(["a = Placeholder()", "b = Neg(a)", "c = Neg(b)"]))
    next(graph.op_nodes()).add_attr("_note", 1)
    exported = graph.copy().to_graph_def()
    assert [node.experimental_type.type_id for node in exported.node] == [FullTypeId.Value("TFT_TENSOR"), 0, 0]
    names = [list(node.experimental_debug_info.original_node_names) for node in exported.node]
    assert names == [["from0"], ["from1"], []]
    assert not exported.node[2].HasField("experimental_debug_info")


def _imported(graph_def: GraphDef) -> Graph:
    graph = Graph()
    import_graph_def(graph_def, graph)
    return graph
