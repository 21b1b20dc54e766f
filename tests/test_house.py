"""The floors: who may import whom, where trio, simpy and protobuf are used, and how modules begin.

The files of the checkout are parsed, not imported, so that broken modules are checked too. Each test names the files
that break its rule. CONTRIBUTING.md and docs/architecture.md describe the rules.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[1]
# Floor by top-level room; an import points to a lower floor or stays in its room.
FLOORS = {
    "__init__": 0,
    "errors": -1,
    "collector": -1,  # below lazy
    "entry_points": 0,
    "lazy": 0,
    "graph": 1,
    "rendezvous": 1,
    "devices": 2,
    "actors": 3,
    "scenarios": 4,
    "__main__": 5,
}
# The inner floors of a room, low to high: files and folders, several on one floor if none is above the other. "ops" is
# the folder's own files, "ops/*" the folders in it. An import points to an earlier entry or stays in its own.
INNER_FLOORS = {
    "graph": [
        "dtypes attrs tensor tensor_id device_name suggestions checking message_fields arrays protos varint display",
        "ops",
        "library",
        "columns edge_ends adjacency port_table versions debug_info exporter node printer graph invariants validate",
        "graphdef",
        "builder",
        "structured",
        "functions",
        "analysis",
        "shape_inference",
        "ops/*",
        "passes",
        "gradients",
        "parallel",
        "partition",
        "tasks checked_import",
        "formats",
    ],
    "devices": [
        "cores units tables spec link catalog kinds operating_costs device fabric topology profiles short_names "
        "cluster_html cluster fabric_file host_tables profile_file cluster_file given_cluster machines visible state "
        "documents cluster_document",
        "kernels",
        "wire placement",
        "pipeline",
        "timing",
        "calibration",
    ],
    "actors": ["plans", "running", "sessions"],
}
MAX_CIRCLE = 3  # files that may import each other, if they are in one folder
ROOMS = [room for room, floor in FLOORS.items() if 1 <= floor <= 4]
# Who may import a library that is kept to its own room; a folder stands for everything below it.
CONFINED = {
    "trio": ["rendezvous", "actors/running", "actors/sessions", "scenarios/cli.py"],
    "simpy": ["devices/timing"],
    "google": ["graph", "devices/timing/export"],
    "click": ["scenarios"],
    "rich": ["scenarios"],
    "asyncio": ["actors/sessions/bridges/guest.py", "actors/sessions/processes"],
    "dask": ["actors/sessions/processes"],
    "distributed": ["actors/sessions/processes"],
}
NOT_IMPORTED_ANYWHERE = {"tensorflow", "torch", "jax", "ray"}
MAX_FILE_LINES, MAX_FUNCTION_LINES, MAX_FILES = 400, 60, 25
SHORT = 8  # a public function of at most so many lines needs no docstring


def sources(*folders: str) -> list[Path]:
    """Own Python files below the folders (of the package by default), without those protoc wrote."""
    files = (
        [CHECKOUT / f"{name}.py" for name in ("__init__", "__main__", "collector", "entry_points", "errors", "lazy")]
        if not folders
        else []
    )
    for folder in folders or ROOMS:
        files += (CHECKOUT / folder).rglob("*.py")
    return sorted(path for path in files if path.exists() and not path.name.endswith("_pb2.py"))


def relative(path: Path) -> str:
    """Path inside the checkout, for messages."""
    return path.relative_to(CHECKOUT).as_posix()


@cache
def tree(path: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(path.read_text(), filename=str(path))


def imports(path: Path) -> Iterator[tuple[str, int]]:
    """Absolute name of everything a package file imports ("partita.graph.dtypes", "numpy"), and the line."""
    package = ["partita", *path.relative_to(CHECKOUT).parent.parts]
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield module, node.lineno
            # `from .. import errors` names a module of the package in the list, not in the path.
            yield from ((f"{module}.{alias.name}", node.lineno) for alias in node.names if node.module is None)


def room(path: Path) -> str:
    """The room a file stands in: its top-level folder, or its own name at the root."""
    first = path.relative_to(CHECKOUT).parts[0]
    return first.removesuffix(".py")


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """All function definitions of a file, nested ones too."""
    return (node for node in ast.walk(tree(path)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def public_functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Functions and methods that another module can call by name, without those defined inside functions."""
    for node in tree(path).body:
        for inner in node.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_") else [node]:
            if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef) and not inner.name.startswith("_"):
                yield inner


def length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function, decorators not counted."""
    return (node.end_lineno or node.lineno) - node.lineno + 1


def is_inside(path: Path, places: list[str]) -> bool:
    """Whether a file is one of the places or below one."""
    name = relative(path)
    return any(name == place or name.startswith(f"{place}/") for place in places)


def test_every_room_is_there() -> None:
    """The rooms of the plan exist, and each is a package."""
    missing = [name for name in ROOMS if not (CHECKOUT / name / "__init__.py").is_file()]
    assert not missing, "\n".join(missing)


def test_imports_only_point_down() -> None:
    """A room imports lower floors only; graph and rendezvous do not import each other."""
    wrong = []
    for path in sources():
        here = room(path)
        for name, line in imports(path):
            parts = name.split(".")
            target = parts[1] if parts[0] == "partita" and len(parts) > 1 else None
            if target in FLOORS and target != here and FLOORS[target] >= FLOORS[here]:
                wrong.append(f"{relative(path)}:{line} imports {name}")
    assert not wrong, "\n".join(wrong)


def module(path: Path) -> str:
    """The name of a file of the package as `imports` gives it."""
    return ".".join(["partita", *path.relative_to(CHECKOUT).with_suffix("").parts]).removesuffix(".__init__")


def imported_modules(path: Path, modules: Collection[str]) -> set[str]:
    """Those of `modules` that a file imports, also inside functions and for types."""
    package = ["partita", *path.relative_to(CHECKOUT).parent.parts]
    targets = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = ".".join([*package[: len(package) - node.level + 1], *([node.module] if node.module else [])])
            names = [f"{base}.{alias.name}" for alias in node.names]
            targets |= {name if name in modules else base for name in names}
    return targets & set(modules)


def inner_floor(name: str) -> int | None:
    """The number of a module's inner floor; None if its room has no inner floors, or for the package of the room
    itself.
    """
    _, room_name, *rest = name.split(".")
    if not rest:
        return None
    folder_in = len(rest) > 2 or (CHECKOUT / room_name / rest[0] / rest[-1]).is_dir()
    places = ([f"{rest[0]}/*"] if folder_in else []) + [rest[0]]
    floors = INNER_FLOORS[room_name]
    numbers = (i for place in places for i, floor in enumerate(floors) if place in floor.split())
    return next(numbers, len(floors))


@pytest.mark.parametrize("name", INNER_FLOORS)
def test_inner_floors(name: str) -> None:
    """Inside a room, too, an import points down or stays; every file has a floor."""
    modules = {module(path): path for path in sources(name)}
    nowhere = [name_of_module for name_of_module in modules if inner_floor(name_of_module) == len(INNER_FLOORS[name])]
    assert not nowhere, nowhere
    wrong = {
        f"{relative(path)} imports {target}"
        for name_of_module, path in modules.items()
        for target in imported_modules(path, modules)
        if (here := inner_floor(name_of_module)) is not None
        and ((there := inner_floor(target)) is None or there > here)
    }
    assert not wrong, "\n".join(sorted(wrong))


def circles(edges: Mapping[str, Collection[str]]) -> list[set[str]]:
    """The strongly connected components of more than one vertex."""

    def reached(start: str, following: Mapping[str, Collection[str]]) -> set[str]:
        seen, waiting = {start}, [start]
        while waiting:
            new = set(following[waiting.pop()]) - seen
            seen |= new
            waiting += new
        return seen

    backwards: dict[str, set[str]] = {name: set() for name in edges}
    for name, targets in edges.items():
        for target in targets:
            backwards[target].add(name)
    components: list[set[str]] = []
    for name in edges:
        if not any(name in circle for circle in components):
            circle = reached(name, edges) & reached(name, backwards)
            components += [circle] if len(circle) > 1 else []
    return components


def test_no_large_circles_of_imports() -> None:
    """At most three files import each other in a circle, in one folder; imports for types and in functions count."""
    modules = {module(path): path for path in sources()}
    wrong = [
        sorted(circle)
        for circle in circles({name: imported_modules(path, modules) for name, path in modules.items()})
        if len(circle) > MAX_CIRCLE or len({modules[name].parent for name in circle}) > 1
    ]
    assert not wrong, "\n".join(map(", ".join, wrong))


def test_imports_inside_the_package_are_relative() -> None:
    """No file of the package has `import partita`: tools load it under the folder's name, so it would load twice."""
    absolute = [
        f"{relative(path)}:{node.lineno}"
        for path in sources()
        for node in ast.walk(tree(path))
        if (isinstance(node, ast.ImportFrom) and node.level == 0 and (node.module or "").split(".")[0] == "partita")
        or (isinstance(node, ast.Import) and any(alias.name.split(".")[0] == "partita" for alias in node.names))
    ]
    assert not absolute, "\n".join(absolute)


@pytest.mark.parametrize("library", CONFINED)
def test_a_library_stays_in_its_room(library: str) -> None:
    """trio, simpy, protobuf and the terminal libraries are imported where the plan says and nowhere else."""
    wrong = [
        f"{relative(path)}:{line}"
        for path in sources()
        for name, line in imports(path)
        if name.split(".")[0] == library and not is_inside(path, CONFINED[library])
    ]
    assert not wrong, "\n".join(wrong)


def test_messages_stay_with_graph_and_exporters() -> None:
    """Protobuf messages are made and read by graph's (de)serialisers and the trace exporters only."""
    allowed = ["graph", "devices/timing/export", "actors/plans/tracing.py", "actors/running/trace.py"]
    wrong = [
        f"{relative(path)}:{line} imports {name}"
        for path in sources()
        for name, line in imports(path)
        if name.startswith("partita.graph.protos") and not is_inside(path, allowed)
    ]
    assert not wrong, "\n".join(wrong)


def test_dependencies_are_declared() -> None:
    """Every third-party library that the package imports is in pyproject.toml, and none is a peer."""
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    listed = project["dependencies"] + project["optional-dependencies"]["dask"]
    declared = {re.split(r"[^A-Za-z0-9_]", text)[0].lower() for text in listed}
    declared = {{"attrs": "attr", "protobuf": "google"}.get(name, name) for name in declared} | {"attrs", "partita"}
    used = {name.split(".")[0] for path in sources() for name, _ in imports(path)}
    extra = used - declared - set(sys.stdlib_module_names) - {"__future__"}
    assert (extra, used & NOT_IMPORTED_ANYWHERE) == (set(), set())


def test_package_list_equals_the_folders() -> None:
    """Every folder with Python files is listed in pyproject.toml, is a package, and nothing else is listed."""
    listed = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    folders = {path.parent for name in ROOMS for path in (CHECKOUT / name).rglob("*.py")}
    expected = ["partita", *sorted(".".join(["partita", *path.relative_to(CHECKOUT).parts]) for path in folders)]
    assert listed == expected
    bare = [relative(folder) for folder in sorted(folders) if not (folder / "__init__.py").is_file()]
    assert not bare, "\n".join(bare)


def test_root_init_is_a_docstring_only() -> None:
    """Tools import the root under the folder's name, so code in it would run twice."""
    body = tree(CHECKOUT / "__init__.py").body
    assert len(body) == 1
    assert ast.get_docstring(tree(CHECKOUT / "__init__.py"))


def test_every_module_opens_with_a_docstring() -> None:
    """The docstring comes first, also in tests and benchmarks."""
    everything = sources() + sources("tests") + sources("benchmarks")
    silent = [relative(path) for path in everything if not ast.get_docstring(tree(path))]
    assert not silent, "\n".join(silent)


def test_public_functions_explain_themselves() -> None:
    """A public function of more than eight lines has a docstring."""
    silent = [
        f"{relative(path)}:{node.lineno} {node.name}"
        for path in sources()
        for node in public_functions(path)
        if length(node) > SHORT and not ast.get_docstring(node)
    ]
    assert not silent, "\n".join(silent)


def test_files_and_functions_stay_small() -> None:
    """At most 400 lines per file and 60 per function."""
    everything = sources() + sources("tests")
    long = [relative(path) for path in everything if len(path.read_text().splitlines()) > MAX_FILE_LINES]
    long += [
        f"{relative(path)}:{node.lineno} {node.name}"
        for path in everything
        for node in functions(path)
        if length(node) > MAX_FUNCTION_LINES
    ]
    assert not long, "\n".join(long)


def test_folders_stay_small() -> None:
    """A folder lists at most 25 modules of its own, so that its listing can be read."""
    listed = [path for path in sources() + sources("tests") if path.name != "__init__.py"]
    sizes = Counter(path.parent for path in listed)
    large = [f"{relative(folder)}: {size} modules" for folder, size in sizes.items() if size > MAX_FILES]
    assert not large, "\n".join(large)


def test_tests_mirror_the_folders() -> None:
    """A folder of tests has the name of a folder of the package, or is one of those for all rooms."""
    across = {"laws", "conformance", "golden", "house", "browser", "conformance/data"}
    across |= {
        "laws/models",
        "laws/parallel",
        "laws/representatives",
        "laws/sweeps",
        "laws/worker_kills",
        "laws/worker_memory",
        "actors/running/answers",
        "devices/kernels/sweep",
        "graph/shape_inference/sweep",
    }
    folders = {path.parent.relative_to(CHECKOUT / "tests").as_posix() for path in sources("tests")} - {"."}
    stray = [name for name in folders if name not in across and not (CHECKOUT / name).is_dir()]
    assert not stray, "\n".join(stray)


def test_every_test_can_fail() -> None:
    """A test asserts, expects an error, or calls a helper that does."""
    speaks = re.compile(r"\bAssert\(|'(raises|warns|(?:assert|check|expect|compare)\w*)'")
    idle = [
        f"{relative(path)}:{node.lineno} {node.name}"
        for path in sources("tests")
        for node in functions(path)
        if node.name.startswith("test_") and not speaks.search(ast.dump(node))
    ]
    assert not idle, "\n".join(idle)


def test_no_path_of_a_machine() -> None:
    """No file has an absolute path of a developer's machine."""
    suffixes = {".py", ".md", ".toml", ".proto", ".sh", ".json", ".txt"}
    machine = re.compile(r"(?<![\w./])/(?:home|root|Users|work|tmp|mnt)/\w+")
    files = [CHECKOUT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "pyproject.toml", "Makefile")]
    for folder in [*ROOMS, "tests", "docs", "benchmarks", ".ci", "tools"]:
        files += [path for path in (CHECKOUT / folder).rglob("*") if path.suffix in suffixes or path.name == "run"]
    wrong = [
        f"{relative(path)}: {match[0]}"
        for path in sorted(files)
        if (match := machine.search(path.read_text(errors="replace")))
    ]
    assert not wrong, "\n".join(wrong)
