"""Makes `docs/support.md`: for every op with a kernel or a shape function its types, and what Partita has for it.

The page is made from the tables of kernels, shape functions, gradients and costs; `tests/test_generated_pages.py`
compares it with the committed page.

    python tools/make_support_table.py
"""

from __future__ import annotations

from pathlib import Path

from partita.devices.kernels import op_cost, registry as kernels
from partita.graph.analysis import gradient_rules as gradients, shape_functions as shapes
from partita.graph.dtypes import DataType, base_type, dtype_name
from partita.graph.ops.kernel_facts import types_with_kernel
from partita.graph.ops.record import record_of
from partita.graph.ops.registry import OpSignature, lookup_op

TARGET = Path(__file__).parent.parent / "docs" / "support.md"
HEAD = """# Supported ops

Made by `tools/make_support_table.py` from the tables in the code; do not edit.

*Types* are those in which a node is placed on a CPU, as in TensorFlow: of its attr T, or else of its first output. A
kernel computes in the type of its inputs, half types in float32 where TensorFlow does so. *Kernel*: the op runs.
*Shapes*: there is a shape function. *Gradient*: `yes` for a rule, `flat` where nothing flows back through the op; asked
to go through any other op, `gradients` raises. *Cost* in a simulation: `free` takes no time, `view` also shares its
input's buffer, `host` takes a fixed time of the host, `matrix` is counted by a formula and runs on the units for matrix
products, `formula` is counted by one, `elements` is one operation per output element; `guessed` is the same where
nothing states a cost.
"""
ALL = frozenset(DataType)
GROUPS = {
    "all floats": {DataType.HALF, DataType.BFLOAT16, DataType.FLOAT, DataType.DOUBLE},
    "all complex": {DataType.COMPLEX64, DataType.COMPLEX128},
    "all ints": {DataType[f"{sign}INT{bits}"] for sign in ("", "U") for bits in (8, 16, 32, 64)},
    "all quantised": {DataType.QINT8, DataType.QUINT8, DataType.QINT16, DataType.QUINT16, DataType.QINT32},
}


def types_text(types: frozenset[DataType]) -> str:
    """Element types in words: groups first, then single types in the order of their numbers."""
    remaining, words = set(types), []
    for name, group in GROUPS.items():
        if group <= remaining:
            words.append(name)
            remaining -= group
    return ", ".join([*words, *(dtype_name(dtype) for dtype in sorted(remaining))])


def types_of(signature: OpSignature) -> str:
    """The types of the attr T that nodes may have on a CPU; without T, the types of the first output, or input."""
    args = [*signature.output_args, *signature.input_args]
    if not args:
        return "-"
    attr = "T" if "T" in signature.attrs else args[0].type_attr or args[0].type_list_attr
    if not attr:
        return dtype_name(base_type(args[0].type))
    allowed = frozenset(signature.attrs[attr].allowed or ())
    placed = types_with_kernel(signature.name, attr, "CPU")
    if placed is None:
        return types_text(allowed) if allowed else "any"
    return types_text(frozenset(map(DataType, placed)) & (allowed or ALL)) or "-"


def cost_of(op: str) -> str:
    """How a simulation computes the cost of the op."""
    if record_of(op).is_view:
        return "view"
    if op_cost.is_free(op):
        return "free"
    if op_cost.is_on_host(op):
        return "host"
    if op_cost.is_matrix(op):
        return "matrix"
    if op_cost.has_formula(op):
        return "formula"
    return "elements" if op_cost.is_stated(op) else "guessed"


def gradient_of(op: str) -> str:
    """Whether there is a gradient."""
    if not gradients.is_registered(op):
        return ""
    return "flat" if gradients.lookup(op) is None else "yes"


def page() -> str:
    """The page."""
    ops = sorted(kernels.registered_ops() | shapes.registered_ops())
    runs, shaped = kernels.registered_ops(), shapes.registered_ops()
    lines = [HEAD, f"{len(runs)} ops have a kernel, {len(shaped)} a shape function.\n"]
    lines += ["| op | types | kernel | shapes | gradient | cost |", "|---|---|---|---|---|---|"]
    for op in ops:
        marks = [*("yes" if op in table else "" for table in (runs, shaped)), gradient_of(op)]
        lines.append(f"| {op} | {types_of(lookup_op(op))} | {' | '.join(marks)} | {cost_of(op)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    TARGET.write_text(page())
