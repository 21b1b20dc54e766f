"""What a table says of an op does not depend on what has been loaded."""

from __future__ import annotations

from importlib import import_module

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
