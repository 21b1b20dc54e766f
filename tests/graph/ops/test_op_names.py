"""Op names stand together in their records only: a pass asks what an op is, and keeps no list of its own.

Registrations are calls, with names as arguments, and no collections; what attaches to ops by name is left out by room.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from partita.graph.ops.registry import op_names
from tests.test_house import is_inside, relative, sources, tree

# Where op names may stand together: what speaks of ops, what is attached to them by name, and meaning itself.
NAMES_OPS = {
    "graph/ops": "the records",
    "devices/kernels": "kernels and costs are attached by name",
    "graph/shape_inference/values.py": "how small values are computed is attached by name",
    "graph/shape_inference/op_shapes.py": "what handles of variables and tensor arrays stand for",
    "graph/passes/foldable.py": "what each of the ops makes of a shape",
    "actors/plans/levels.py": "folds loops of Enter, Exit and NextIteration, not of their kin on references",
}


def test_op_names_are_listed_in_their_records_only() -> None:
    """No pass has a set, tuple or table of ops of its own: it asks the record, so that all passes agree."""
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
    """The texts that are written out as items, or keys, of a collection."""
    items: Sequence[ast.expr | None] = ()
    if isinstance(node, ast.Set | ast.Tuple | ast.List):
        items = node.elts
    elif isinstance(node, ast.Dict):
        items = node.keys
    return {item.value for item in items if isinstance(item, ast.Constant) and isinstance(item.value, str)}
