"""What a table says of an op does not depend on what has been loaded."""

from __future__ import annotations

import sys
from importlib import import_module

from partita.graph.analysis import gradient_rules
from partita.graph.ops.op_table import OpTable
from partita.graph.ops.record import record_of
from tests.fresh import fresh_process

MODULES = [
    "partita.devices.kernels.in_place",
    "partita.devices.kernels.op_cost",
    "partita.devices.kernels.registry",
    "partita.graph.analysis.gradient_rules",
    "partita.graph.analysis.shape_functions",
]


def first_origins(asked: list[tuple[str, str, str]]) -> list[str | None]:
    """The origin of the entry of an op in a table, of a module: the first thing that each family is asked for."""
    return [getattr(import_module(module), table).origin(op) for module, table, op in asked]


def loaded_for(op: str) -> tuple[bool, set[str]]:
    """Whether an op has a gradient, and which modules of gradients of the family of arrays tell that."""
    found = op in gradient_rules.table()
    package, ending = "partita.graph.ops.arrays.", "_gradients"
    return found, {name.removeprefix(package) for name in sys.modules if name.startswith(package) and ending in name}


def test_an_op_imports_the_modules_that_name_it() -> None:
    """The others of its family stay where they are, and are all looked at for an op that none registers."""
    found, modules = fresh_process(loaded_for, "Transpose")
    assert found
    assert "layout_gradients" in modules
    assert modules.isdisjoint({"padding_gradients", "slicing_gradients"})
    found, modules = fresh_process(loaded_for, "InTopK")
    assert not found
    assert {"layout_gradients", "padding_gradients", "slicing_gradients"} <= modules


def test_the_first_question_is_answered_as_a_later_one() -> None:
    """In every table, by an op of every family that has entries there."""
    asked: list[tuple[str, str, str]] = []
    later: list[str | None] = []
    for module in MODULES:
        for name, table in vars(import_module(module)).items():
            if isinstance(table, OpTable):
                ops = {record_of(op).family: op for op in sorted(table, reverse=True) if table.is_built_in(op)}
                asked += [(module, name, op) for op in ops.values()]
                later += [table.origin(op) for op in ops.values()]
    assert len(asked) > 80
    assert None not in later
    assert fresh_process(first_origins, asked) == later
