"""No pass has its own list of op names: it asks the record of an op, so that all passes agree.

Names as arguments of registrations are allowed; the rooms in `NAMES_OPS` may have collections of names.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from partita.graph.ops.registry import op_names
from tests.test_house import is_inside, relative, sources, tree

# Files and folders that may have collections of op names, with the reason.
NAMES_OPS = {
    "graph/ops": "the records",
    "devices/kernels": "kernels and costs are attached by name",
    "devices/wire/sendable.py": "classes of kernels by name, some of which have the name of an op",
    "devices/timing/costs/grappler_counts": "the rules of TensorFlow's estimator are its own, by op",
    "devices/timing/fits/memory_bound.py": "measured kinds of ops, such as permute, are attached by name",
    "graph/analysis/known_values.py": "how counters of loops are computed is attached by name",
    "graph/shape_inference/op_shapes.py": "handles of variables and tensor arrays are followed by op",
}


def test_op_names_are_listed_in_their_records_only() -> None:
    """No set, tuple, list or dictionary of two or more op names elsewhere."""
    known = set(op_names())
    wrong = [
        f"{relative(path)}:{node.lineno} lists {', '.join(sorted(names))}"
        for path in sources()
        if not is_inside(path, list(NAMES_OPS))
        for node in ast.walk(tree(path))
        if isinstance(node, ast.expr) and len(names := listed_texts(node) & known) > 1
    ]
    assert not wrong, "\n".join(wrong)


def listed_texts(node: ast.expr) -> set[str]:
    """The string literals among the items, or keys, of a collection."""
    items: Sequence[ast.expr | None] = ()
    if isinstance(node, ast.Set | ast.Tuple | ast.List):
        items = node.elts
    elif isinstance(node, ast.Dict):
        items = node.keys
    return {item.value for item in items if isinstance(item, ast.Constant) and isinstance(item.value, str)}
