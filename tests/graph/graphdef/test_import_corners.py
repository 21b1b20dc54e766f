"""Import in its corners: options that meet, loops, namespaces, versions. Expected is what TensorFlow 2.21 does."""

from __future__ import annotations

import pytest

from partita.errors import InvalidArgumentError
from partita.graph import Graph, ImportOptions, graph_def_to_graph, import_graph_def
from tests.graph.graphdef.lines import edges, nodes


def test_a_node_that_runs_before_several_runs_once() -> None:
    """Control dependencies that are named twice give one edge."""
    graph = Graph()
    import_graph_def(nodes("first = NoOp()"), graph)
    import_graph_def(nodes("x = NoOp()"), graph, ImportOptions(control_dependencies=["first", "first"]))
    assert edges(graph) == ["first:-1->x:-1"]


def test_what_reads_a_skipped_node_in_another_way_is_refused() -> None:
    """A control input from a node whose outputs are mapped has no node to come from."""
    graph = Graph()
    import_graph_def(nodes("p = Placeholder()"), graph)
    options = ImportOptions(input_map={"x": "p"}, skip_mapped_nodes=True)
    with pytest.raises(
        InvalidArgumentError, match="Node 'y' had a back edge, but only Merge nodes can have back edges"
    ):
        import_graph_def(nodes("x = Placeholder()", "y = NoOp(^x)"), graph, options)
    import_graph_def(nodes("x = Placeholder()", "y = Neg(x)"), graph, options)
    assert edges(graph) == ["p:0->y:0"]


def test_groups_of_nodes_that_are_not_imported_get_the_prefix_too() -> None:
    """As TensorFlow renames them; a `_class` that is no list of texts names no group."""
    graph_def = nodes("x = Placeholder()", "y = Placeholder()")
    graph_def.node[0].attr["_class"].list.s.append(b"loc:@gone")
    graph_def.node[1].attr["_class"].s = b"loc:@x"
    graph = Graph()
    import_graph_def(graph_def, graph, ImportOptions(prefix="p", validate_colocation_constraints=False))
    assert [node.attr("_class") for node in graph.op_nodes()] == [(b"loc:@p/gone",), b"loc:@x"]


def test_old_consumers_cannot_read_a_graph_with_functions() -> None:
    """An import of functions raises the least consumer to 12; a conversion takes the versions as they are."""
    graph_def = nodes("x = Placeholder()")
    graph_def.library.function.add().signature.name = "F"
    graph = Graph()
    import_graph_def(graph_def, graph)
    assert graph.versions.min_consumer == 12
    assert graph_def_to_graph(graph_def).versions.min_consumer == 0


def test_a_loop_must_be_closed_by_an_output_that_exists() -> None:
    """The edge that closes a loop is checked in other words than an edge between nodes."""
    graph_def = nodes("x = Placeholder()", "m = Merge(x, n:1)", "n = NextIteration(m)")
    with pytest.raises(InvalidArgumentError) as refused:
        import_graph_def(graph_def, Graph(), ImportOptions(prefix="p"))
    assert refused.value.message == "Output 1 of node p/n does not exist. Node only has 1 outputs."


@pytest.mark.parametrize("name", ["a>b", "a>b>c", "a/b>c", ">a", "a>", "a>>b", "a>/b", "a>_b"])
def test_the_parts_of_a_name_in_a_namespace_are_names(name: str) -> None:
    """Each part between ">" begins with a letter, a digit or a dot."""
    graph_def = nodes(f"{name} = NoOp()")
    if all(part[:1].isalnum() for part in name.split(">")):
        assert [node.name for node in graph_def_to_graph(graph_def).op_nodes()] == [name]
    else:
        with pytest.raises(InvalidArgumentError, match="Node name contains invalid characters"):
            graph_def_to_graph(graph_def)


def test_names_in_use_are_told_before_what_is_wrong_with_nodes() -> None:
    """Those of nodes that are skipped too."""
    graph = Graph()
    import_graph_def(nodes("p = Placeholder()", "y = Placeholder()"), graph)
    with pytest.raises(InvalidArgumentError, match="Node name 'y' already exists in the Graph"):
        import_graph_def(nodes("x = Placeholder()", "z = Neg(x, x)", "y = Neg(x)"), graph)
    options = ImportOptions(input_map={"y": "p"}, skip_mapped_nodes=True)
    with pytest.raises(InvalidArgumentError, match="Node name 'y' already exists in the Graph"):
        import_graph_def(nodes("y = Placeholder()"), graph, options)


def test_options_that_exclude_each_other_are_told_first() -> None:
    """Before anything of the GraphDef is looked at."""
    options = ImportOptions(skip_mapped_nodes=True, return_nodes=["x"])
    with pytest.raises(InvalidArgumentError, match="Requesting return_nodes with skip_mapped_nodes set"):
        import_graph_def(nodes("x = Neg(nothing)"), Graph(), options)
