"""Text decides nothing: what a name or a message looks like is asked only where text is what is read.

    node.name.startswith("while/")     a decision by a name: give the node an attr, or keep the fact beside the graph
    "no such" in str(error)            by a message: give the error a reason
    action.__name__ == "begin"         by the name of a function: compare the function

Texts that are read because they come from outside, such as grammars, file formats and foreign traces, stand below.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.house.test_names import CHECKOUT, PACKAGE

GRAMMAR = "reads a grammar: names, numbers, lists, declarations as users or TensorFlow write them"
FILES = "reads files of other programs, whose text is all there is"
VARIANTS = "one function for the variants of an op, which it tells by the name that its own family gives them"
STRINGS = "computes on strings: patterns and numbers are the inputs of the op"
ALLOWED = {
    # what users and files write
    "devices/calibration/": FILES,
    "graph/formats/": FILES,
    "devices/cluster.py": GRAMMAR,
    "devices/cluster_file.py": GRAMMAR,
    "devices/documents.py": GRAMMAR,
    "devices/fabric_file.py": GRAMMAR,
    "devices/short_names.py": GRAMMAR,
    "devices/units.py": GRAMMAR,
    "devices/timing/fits/sourced.py": GRAMMAR,
    "devices/timing/saved/": "entries and codings of a file, which these files alone write and read",
    "devices/timing/fits/kernels/kernel_table.py": "keys of a calibration file: the range of each size",
    "graph/ops/files/tensor_slices.py": GRAMMAR,
    "graph/builder/front_end.py": GRAMMAR,
    "graph/device_name.py": GRAMMAR,
    "graph/analysis/fed_nodes.py": "the name of the node of a feed, which this file alone writes and reads",
    "graph/graphdef/import_names.py": GRAMMAR,
    "graph/ops/declaration.py": GRAMMAR,
    "graph/ops/device_kinds.py": GRAMMAR,
    "graph/ops/op_def_rules.py": GRAMMAR,
    "graph/validate.py": GRAMMAR,
    "scenarios/sweeps/command_points.py": GRAMMAR,
    "actors/sessions/processes/messages/": "names of messages, which this folder alone writes and reads",
    "rendezvous/key.py": "the text of a key, which this file alone writes and reads",
    "rendezvous/worker.py": "the sender in the text of a key",
    "lazy.py": "the source of a package, which a test reads with `ast`",
    # what TensorFlow decides by names, and we so with it
    "graph/partition/loops.py": "TensorFlow's mark of control loops, also in a share; no user may name a node so",
    "graph/passes/isolate_calls.py": "TensorFlow's names show, in a graph read again, which nodes it inserted",
    "graph/analysis/cost_graph.py": "streams of devices in a trace are known by name alone",
    "devices/timing/tracing/lowered_names.py": "nodes of foreign traces are known by name alone",
    # names of columns, fields and modules, not of nodes
    "devices/catalog/__init__.py": "names of files in the catalog",
    "devices/spec.py": "units at the end of our own fields",
    "devices/timing/costs/source.py": "units at the end of our own fields",
    "graph/ops/op_table.py": "modules of this package are told from others by name",
    "graph/suggestions.py": "likeness of names is what it looks for",
    "graph/tensor.py": "names of our own enum",
    "graph/printer.py": "shortens what numpy prints",
    "scenarios/commands/feeds.py": "numpy has one ValueError for all that it refuses",
    "scenarios/completion.py": "a shell asks for the names that begin as a word does",
    "scenarios/wrapping.py": "breaks lines between words, and at nothing else",
    "scenarios/stories/": "a story picks the events that it tells of",
    # ops and strings
    "graph/ops/": VARIANTS,
    "devices/kernels/strings/": STRINGS,
    "devices/kernels/tables/vocabulary.py": STRINGS,
    "devices/kernels/files/": "patterns and schemes of file names",
    "devices/kernels/datasets/csv_files.py": STRINGS,
    "devices/kernels/": VARIANTS,
    "devices/timing/bodies/": "nodes of a called body are told by the prefix that inlining gives them",
}
"""files, or folders with a slash, and why text decides there; the first that fits counts"""
MARKS = {
    "^": "marks a control input in a GraphDef",
    "_": "marks internal attrs, and nodes that requests add",
    ".toml": "the ending of a file",
    "list(": "marks types of lists in an OpDef",
    "-": "marks an option of the command line",
    "#": "marks a comment",
    "/": "ends a folder",
}
"""texts of which a name may begin or end with"""
MATCHERS = {"match", "search", "fullmatch", "compile", "findall", "finditer", "sub", "split"}
NAMES = re.compile(r"\b(names?|op|node|message|error|text|device|handle|function|call|key)\b")


def decisions(tree: ast.AST) -> Iterator[ast.expr]:
    """What a file asks of the look of a text."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=of, attr="startswith" | "endswith"), args=[text, *_]):
                marks = isinstance(text, ast.Constant) and text.value in MARKS
                if not marks and NAMES.search(ast.unparse(of).replace(".", " ").replace("_", " ")):
                    yield node
            case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr=function)) if function in MATCHERS:
                yield node
            case ast.Compare(left=left, comparators=[right]):
                if "__name__" in (getattr(left, "attr", ""), getattr(right, "attr", "")):
                    yield node
                of_message = isinstance(right, ast.Call) and ast.unparse(right.func) in ("str", "repr")
                is_name = isinstance(right, ast.Attribute) and right.attr in ("name", "op", "message")
                is_text = isinstance(left, ast.Constant | ast.JoinedStr)
                if isinstance(node.ops[0], ast.In | ast.NotIn) and is_text and (of_message or is_name):
                    yield node


def test_what_a_decision_by_text_is() -> None:
    """The scan sees the three sorts, and leaves out equality of names, members of collections, and marks."""
    seen = 'n.name.startswith("a"); re.match("a", x); f.__name__ == "a"; "a" in str(error); "Bias" in c.op'
    not_seen = 'n.name == "a"; "a" in names; x.startswith("^"); data.startswith(magic); "a" in {"a"}'
    assert len(list(decisions(ast.parse(seen)))) == 5
    assert not list(decisions(ast.parse(not_seen)))


def test_text_decides_nothing() -> None:
    """In no file but those that are allowed to, each for its reason."""
    used: set[str] = set()
    for path in PACKAGE:
        name = path.relative_to(CHECKOUT).as_posix()
        found = [f"{name}:{each.lineno} {ast.unparse(each)}" for each in decisions(ast.parse(path.read_text()))]
        allowed = next(
            (place for place in ALLOWED if name == place or (place[-1] == "/" and name.startswith(place))), ""
        )
        assert allowed or not found, "\n".join(found)
        if found and allowed:
            used.add(allowed)
    assert set(ALLOWED) - used == set(), "exceptions that are no longer needed"
