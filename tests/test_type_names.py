"""A type name means one thing: classes and aliases of the package are defined in one module each, with few exceptions.

A reader who meets `Place` in two modules has to look up which of the two it is. Counted are classes, also nested ones,
and the aliases, NewTypes and functional NamedTuples at the top of modules. TypeVars say nothing alone and do not count;
private names of a family of ops (`_Shard` in devices/kernels/datasets) are read in their family only and do not count
either. What is still defined in several modules stands in SHARED, which may only become shorter.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.test_house import relative, sources, tree

MAX_SHARE = 0.03
TYPE_NAME = re.compile(r"_?[A-Z](\w*[a-z]\w*)?")  # capitals alone (`SHORT`) are a constant
TYPE_MAKERS = {"NewType", "NamedTuple", "TypedDict", "Enum"}
FAMILIES = ("devices/kernels/", "graph/ops/")
# Name -> the modules that define it: each of these names still means several things.
SHARED: dict[str, str] = {
    "Call": "devices/kernels/registry.py devices/timing/bodies/scripts.py",
    "Callee": "actors/running/callee.py devices/timing/bodies/arguments.py",
    "Levels": "actors/plans/levels.py devices/timing/bodies/levels.py",
}


def is_type_expression(value: ast.expr) -> bool:
    """Whether an assigned value is a type: a name, a subscript, a union, also quoted, or a call that makes a type."""
    match value:
        case ast.Name() | ast.Attribute() | ast.Subscript():
            return True
        case ast.BinOp(op=ast.BitOr()):
            return True
        case ast.Constant(value=str() as text):
            return "[" in text or "|" in text
        case ast.Call():
            return ast.unparse(value.func).split(".")[-1] in TYPE_MAKERS
    return False


def alias_names(module: ast.Module) -> Iterator[str]:
    """Names that a module gives to types at its top."""
    for node in module.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                pass
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                pass
            case _:
                continue
        if TYPE_NAME.fullmatch(name) and is_type_expression(value):
            yield name


def type_names(path: Path) -> set[str]:
    """The type names that a file defines."""
    classes = {node.name for node in ast.walk(tree(path)) if isinstance(node, ast.ClassDef)}
    return classes | set(alias_names(tree(path)))


def modules_by_name() -> dict[str, list[str]]:
    """Every type name of the package with the files that define it."""
    modules: dict[str, list[str]] = defaultdict(list)
    for path in sources():
        own = relative(path)
        for name in type_names(path):
            if not (name.startswith("_") and own.startswith(FAMILIES)):
                modules[name].append(own)
    return modules


def shared_names() -> dict[str, str]:
    """The names that several modules define, each with those modules."""
    return {name: " ".join(files) for name, files in sorted(modules_by_name().items()) if len(files) > 1}


def test_type_names_mean_one_thing() -> None:
    """No name but those listed is defined twice; a listed one that is not defined twice any more leaves the list."""
    shared = shared_names()
    new = {name: files for name, files in shared.items() if files != SHARED.get(name)}
    gone = sorted(SHARED.keys() - shared.keys())
    assert (new, gone) == ({}, []), "say what the type is in its name, or take the name off the list"


def test_few_type_names_are_shared() -> None:
    """At most three type names in a hundred mean several things."""
    shared, names = len(shared_names()), len(modules_by_name())
    print(f"{shared} of {names} type names are defined in several modules: {shared / names:.1%}")
    assert shared <= MAX_SHARE * names


def test_a_name_given_twice_is_seen() -> None:
    """Classes, nested ones, aliases of any form and NewTypes are type names; constants, values and TypeVars are not."""
    text = (
        "class A1a:\n    class Inner: ...\nPair = tuple[int, int]\nMaybe: TypeAlias = int | None\nQuoted = 'list[A]'\n"
        "Id = NewType('Id', int)\nT = TypeVar('T')\nLIMIT = 3\nTable = {1: 2}\nmade = dict[str, int]\nName = Pair\n"
    )
    classes = {node.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ClassDef)}
    assert (classes, set(alias_names(ast.parse(text)))) == (
        {"A1a", "Inner"},
        {"Pair", "Maybe", "Quoted", "Id", "Name"},
    )
