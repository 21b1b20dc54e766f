"""The functions of an op are in one family and in modules of one topic; so are the tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from partita.devices.kernels import in_place, op_cost, registry
from partita.graph.analysis import counters, gradient_rules, shape_functions, value_rules
from partita.graph.ops.op_table import OpTable
from partita.graph.ops.record import record_of

ROOT = Path(__file__).parent.parent
TABLES: dict[str, OpTable[object]] = {
    f"{module.__name__.rpartition('.')[2]}.{name}": table
    for module in (registry, in_place, shape_functions, gradient_rules, value_rules, counters, op_cost)
    for name, table in vars(module).items()
    if isinstance(table, OpTable)
}
ENDINGS = ("_shapes", "_gradients", "_values", "_counters", "_costs", "_in_place", "_refusals")
KERNELS, RULES = ROOT / "devices" / "kernels", ROOT / "graph" / "ops"


def topic_of(module: str) -> str:
    """The name of a module without the ending for its sort of functions."""
    name = module.rpartition(".")[2]
    return next((name.removesuffix(ending) for ending in ENDINGS if name.endswith(ending)), name)


def homes(op: str) -> dict[str, tuple[str, str]]:
    """Family and topic of the module with the entry for an op, for each table."""
    origins = {name: table.origin(op) for name, table in TABLES.items() if table.is_built_in(op)}
    return {name: (module.split(".")[-2], topic_of(module)) for name, module in origins.items() if module}


HOMES = {op: homes(op) for op in sorted({op for table in TABLES.values() for op in table if table.is_built_in(op)})}


def test_what_an_op_has_stands_in_its_family() -> None:
    """The family of its record, in every table."""
    assert len(HOMES) > 700
    families = {op: {family for family, _ in names.values()} for op, names in HOMES.items()}
    assert not {op: names for op, names in families.items() if names != {record_of(op).family}}


def test_what_an_op_has_stands_in_modules_of_one_topic() -> None:
    """Or in the module named after the family, for families with few functions of a sort."""
    topics = {op: {topic for family, topic in names.values() if topic != family} for op, names in HOMES.items()}
    assert not {op: names for op, names in topics.items() if len(names) > 1}


@pytest.mark.parametrize("folder", [KERNELS, RULES], ids=["kernels", "rules"])
def test_tests_stand_by_what_they_test(folder: Path) -> None:
    """A test in the folder of a family is named after a module of it, or after the family and a sort of functions."""
    strays = []
    for test in (ROOT / "tests" / folder.relative_to(ROOT)).glob("*/test_*.py"):
        family, name = test.parent.name, test.stem.removeprefix("test_")
        if not (folder / family / f"{name}.py").exists() and topic_of(name) != family:
            strays.append(f"{family}/{test.name}")
    assert sorted(strays) == []


def test_a_folder_can_be_taken_in_at_a_glance() -> None:
    """The folder of a family has at most 25 modules."""
    folders = [path for root in (KERNELS, RULES) for path in root.iterdir() if path.is_dir()]
    assert not [folder for folder in folders if len(list(folder.glob("*.py"))) > 25]
