"""HTML for notebooks: texts stay texts, elements are balanced, and nothing is larger than it may be."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from partita.graph import Graph, GraphBuilder
from partita.graph.display.html import MOST_BYTES, Html, details, element, lines, notebook_output, preformatted, table
from partita.graph.display.scopes import folded
from partita.graph.display.visible import visible
from tests.graph.display.checked_html import checked_texts

HOSTILE = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\x1b[2J\x9b31m",
    "a\u202eb\u2066c",
    "&lt;b&gt;",
    '"onclick="alert(1)',
    "x" * 10_000,
    "a/" * 5_000 + "a",
    "=cmd|' /C calc'!A0",
    "\ud800",
)
TEXTS = st.one_of(st.text(st.characters(), max_size=40), st.sampled_from(HOSTILE))
NAMES = st.lists(st.one_of(TEXTS, st.lists(st.sampled_from("abcd"), min_size=1).map("/".join)), max_size=30)


@given(TEXTS, TEXTS)
def test_texts_stay_texts(title: str, text: str) -> None:
    """In elements, tables, folds, drawings and sentences."""
    parts = (details(title, text), table([title], [[text]]), preformatted(text), lines([text]))
    told = checked_texts(notebook_output(title, *parts))
    if len(visible(text)) <= 200 and "\n" not in text:
        assert told.count(visible(text)) >= (4 if text else 1)


def test_elements() -> None:
    """What they look like."""
    assert element("p", "a < b", element("b", "x")) == "<p>a &lt; b<b>x</b></p>"
    assert element("td", "1", style="text-align:right") == '<td style="text-align:right">1</td>'
    assert details("more", is_open=True).startswith('<details style="margin-left:1em" open>')
    assert "... and 60 more" in table(["n"], [[str(number)] for number in range(100)])


@pytest.mark.parametrize("many", [1, 10, 100])
def test_what_has_no_room_is_left_out_and_said(many: int) -> None:
    """Parts stay whole."""
    part = Html("<p>" + "x" * 30_000 + "</p>")
    told = checked_texts(notebook_output("many", *[part] * many))
    kept = min(many, (MOST_BYTES - 1000) // part.size)
    assert told.count("x") == kept * 30_000
    assert (f"{many - kept} more parts" in told) is (many > kept)


@given(NAMES, st.integers(1_000, 20_000))
def test_scopes_fold_all_names_into_the_room_there_is(names: list[str], most: int) -> None:
    """Each name is there, or counted among those without room."""
    html = folded(names, lambda number, label: f"<{number}> {label}", lambda of: f"{len(of)} in all", most)
    told = checked_texts(html)
    assert html.size <= most
    if "no room here" not in told and "in all" not in told:
        assert [number for number in range(len(names)) if f"<{number}>" not in told] == []


@given(st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=6).map("/".join), unique=True, max_size=40))
def test_every_name_has_a_line_where_there_is_room(names: list[str]) -> None:
    """Also names that are scopes of others."""
    html = folded(names, lambda number, label: f"[{number}]", lambda of: "", 190_000)
    told = checked_texts(html)
    assert sorted(told.count(f"[{number}]") for number in range(len(names))) == [1] * len(names)


def test_scopes_are_folded() -> None:
    """A scope with one scope in it is one with it."""
    names = ["layer/dense/mul", "layer/dense/add", "x"]
    told = folded(names, lambda number, label: f"{label};", lambda of: f"{len(of)} nodes:", 5_000)
    assert checked_texts(told) == "layer/dense/ 2 nodes:mul;add;x;"


def test_a_graph() -> None:
    """Its nodes by scope, and how many there are of each op."""
    b = GraphBuilder()
    first = b.op("Neg", b.placeholder("x", "float32", (2,)), name="layer/a")
    b.op("Neg", first, name="layer/b")
    told = checked_texts(b.graph()._repr_html_())
    assert told.startswith("Graph of 3 nodes2 opsopnodesNeg2Placeholder1")
    assert "layer/ 2 nodesa: float = Neg(x)b: float = Neg(layer/a)" in told


@given(NAMES)
def test_a_graph_of_any_names(names: list[str]) -> None:
    """Names that no import would let through."""
    graph = Graph()
    for name in names:
        graph.add_node(name, "NoOp", device=name)
    checked_texts(graph._repr_html_())


def test_a_large_graph_is_cut() -> None:
    """Ten thousand nodes of long names, in one scope or in many."""
    for name in ("x{}" + "y" * 200, "{}/scope/node"):
        graph = Graph()
        for number in range(10_000):
            graph.add_node(name.format(number), "NoOp")
        assert "for which there is no room here" in checked_texts(graph._repr_html_())
