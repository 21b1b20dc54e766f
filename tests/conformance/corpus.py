"""The conformance corpus: graphs, values, partitions and status codes from TensorFlow 2.21.

There are two folders of one layout (index.json, a folder per family, a folder per case): the small part committed
beside this file, and the whole corpus where it exists (environment variable PARTITA_CORPUS, else the folder
`shared/conformance/public` beside the checkout). A case in both is read from the whole corpus. A family without any
case is an error.
"""

from __future__ import annotations

import gzip
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from google.protobuf.message import DecodeError

from partita.graph.dtypes import Array
from partita.graph.protos import GraphDef

COMMITTED = Path(__file__).parent / "data"
CHECKOUT = Path(__file__).parents[2]
_DEVICE_FILE = re.compile(r"(?:(?P<job>.+)_r(?P<replica>\d+)_t(?P<task>\d+)_)?(?P<type>[a-z]+)(?P<id>\d+)\.pb(?:\.gz)?")


def whole_corpus() -> Path | None:
    """The folder of the whole public corpus, or None if only the committed part exists.

    Raises FileNotFoundError if PARTITA_CORPUS names a folder without an index: a typo must not shrink the tests.
    """
    named = os.environ.get("PARTITA_CORPUS")
    if named is not None:
        if not (Path(named) / "index.json").is_file():
            raise FileNotFoundError(f"PARTITA_CORPUS={named!r} holds no index.json; unset it or name the corpus folder")
        return Path(named)
    beside = CHECKOUT.parent / "shared" / "conformance" / "public"
    return beside if (beside / "index.json").is_file() else None


def roots() -> list[Path]:
    """The folders with cases; the first has precedence."""
    whole = whole_corpus()
    return [COMMITTED] if whole is None else [whole, COMMITTED]


@cache
def case_folders() -> dict[str, Path]:
    """Folder of every case by its path in the corpus ("elementary/single_device"), sorted."""
    folders: dict[str, Path] = {}
    for root in roots():
        for line in json.loads((root / "index.json").read_text()):
            folders.setdefault(line["path"], root / line["path"])
    return dict(sorted(folders.items()))


def device_of_file(name: str) -> str:
    """The device of a partition file: `gpu1.pb` is GPU:1 of localhost, `worker_r0_t2_cpu0.pb` names its task."""
    match = _DEVICE_FILE.fullmatch(name)
    if match is None:
        raise ValueError(f"{name!r} is no name of a partition file")
    job, replica, task = (match["job"] or "localhost"), (match["replica"] or "0"), (match["task"] or "0")
    return f"/job:{job}/replica:{replica}/task:{task}/device:{match['type'].upper()}:{match['id']}"


def read_bytes(path: Path) -> bytes:
    """The content of a file, decompressed if its name ends in .gz."""
    data = path.read_bytes()
    return gzip.decompress(data) if path.suffix == ".gz" else data


def load_partitions(folder: Path) -> dict[str, GraphDef]:
    """The partition graphs of a folder by device."""
    files = [path for path in sorted(folder.iterdir()) if ".pb" in path.suffixes]
    return {device_of_file(path.name): GraphDef.FromString(read_bytes(path)) for path in files}


class Tensors:
    """The tensors of one .npz file by key; bfloat16 and strings have encodings of their own."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @cached_property
    def _arrays(self) -> dict[str, Array]:
        if not self._path.exists():
            return {}
        with np.load(self._path) as arrays:
            return dict(arrays)

    def __getitem__(self, key: str) -> Array:
        arrays = self._arrays
        if key in arrays:
            return arrays[key]
        if f"{key}.bf16" in arrays:
            return arrays[f"{key}.bf16"].view(ml_dtypes.bfloat16)
        data, ends = arrays[f"{key}.str"].tobytes(), arrays[f"{key}.off"].tolist()
        strings = np.empty(len(ends) - 1, object)
        strings[:] = [data[start:end] for start, end in pairwise(ends)]
        return strings.reshape(tuple(arrays[f"{key}.shape"]))


@dataclass(frozen=True)
class Step:
    """One run of a case: names of feeds, fetches and targets, keys of the values, folder of the partition graphs."""

    index: int
    feeds: Mapping[str, str | None]
    fetches: tuple[str, ...]
    targets: tuple[str, ...]
    expected: tuple[str, ...]
    folder: Path
    name_counter_start: int | None

    @property
    def is_new(self) -> bool:
        """Whether this step has partitions of its own; a repeated request shares those of the first."""
        return self.index == 0 or self.folder.name == f"partitions_s{self.index}"

    def dump(self) -> dict[str, GraphDef]:
        """The partition graphs that a TensorFlow session returned; empty if the corpus has only raw ones."""
        return load_partitions(self.folder)

    def raw(self) -> dict[str, GraphDef]:
        """The partition graphs that Partition() made, in their original node order; empty if there are only dumps."""
        folder = self.folder / "raw"
        return load_partitions(folder) if folder.is_dir() else {}

    def master(self, file: str) -> GraphDef:
        """The share that a master sends to one task."""
        return GraphDef.FromString(read_bytes(self.folder / "master" / file))

    def client_graph(self) -> str:
        """The listing of the rewritten and pruned graph just before it was partitioned."""
        return read_bytes(self.folder / "raw" / "client.txt.gz").decode()


@dataclass(frozen=True)
class Case:
    """One case of the corpus; `info` is its case.json."""

    path: str
    folder: Path

    @cached_property
    def info(self) -> dict[str, Any]:  # Any: JSON
        """The case.json."""
        info: dict[str, Any] = json.loads((self.folder / "case.json").read_text())
        return info

    @property
    def family(self) -> str:
        """The family: the first part of the path."""
        return self.path.partition("/")[0]

    @property
    def name(self) -> str:
        """The name inside the family."""
        return self.path.partition("/")[2]

    @property
    def devices(self) -> list[str]:
        """Full names of the devices, the client's first."""
        return list(self.info["devices"])

    @property
    def ops(self) -> frozenset[str]:
        """Op names in the graph."""
        return frozenset(self.info["ops"])

    @property
    def has_loop(self) -> bool:
        """Whether the graph has a while loop."""
        return bool(self.ops & {"Enter", "RefEnter"})

    @property
    def level(self) -> str:
        """The level at which partitions must agree: L2 where names depend on hash order."""
        return "L2" if self.info.get("l3_hash_order_risk") else "L3"

    def graph_def(self) -> GraphDef:
        """The input graph, a new message each time."""
        return GraphDef.FromString((self.folder / "graph.pb").read_bytes())

    @cached_property
    def feeds(self) -> Tensors:
        """Values to feed."""
        return Tensors(self.folder / "feeds.npz")

    @cached_property
    def expected(self) -> Tensors:
        """Values that TensorFlow fetched."""
        return Tensors(self.folder / "expected.npz")

    def steps(self) -> list[Step]:
        """The steps in the order in which one session ran them."""
        return [
            Step(
                index,
                step["feeds"],
                tuple(step["fetches"]),
                tuple(step["targets"]),
                tuple(step["expected"]),
                self.folder / step["partitions"],
                step["name_counter_start"],
            )
            for index, step in enumerate(self.info["steps"])
        ]


def cases(family: str) -> list[Case]:
    """All cases of a family, sorted by name. Raises LookupError when there is none."""
    matching = [Case(path, folder) for path, folder in case_folders().items() if path.startswith(f"{family}/")]
    if not matching:
        raise LookupError(f"the corpus has no case of family {family!r}; looked in {[str(root) for root in roots()]}")
    return matching


@dataclass(frozen=True)
class ErrorCase:
    """One request that TensorFlow refused, or accepted although it looks wrong, with its message."""

    info: Mapping[str, Any]  # Any: JSON
    folder: Path

    @property
    def name(self) -> str:
        """Name of the case."""
        return str(self.info["name"])

    @property
    def family(self) -> str:
        """The family: the folder's name."""
        return self.folder.name

    @property
    def has_functions(self) -> bool:
        """Whether the graph has a library of functions, or names one in an attr."""
        try:
            graph = GraphDef.FromString(self.graph_bytes())
        except DecodeError:  # damaged on purpose
            return False
        named = any(value.HasField("func") for node in graph.node for value in node.attr.values())
        return bool(graph.library.function) or named

    @property
    def code(self) -> str:
        """Status code of the session, "OK" if the request is accepted."""
        return str(self.info["session"]["code"])

    @property
    def stage(self) -> str:
        """When the session refuses: "extend" when it is made, "run" later."""
        return str(self.info["session"]["stage"])

    @property
    def core(self) -> str:
        """First line of the session's message, without node decorations."""
        return str(self.info["session"]["core"])

    @property
    def import_answer(self) -> tuple[str, str]:
        """Code and first line of the error of importing alone; "OK" if only a later stage refuses."""
        answer = self.info["import"]
        return (str(answer["code"]), str(answer["core"])) if answer["stage"] == "import" else ("OK", "")

    def graph_bytes(self) -> bytes:
        """The content of the file, which may be no GraphDef."""
        return (self.folder / str(self.info["graph"])).read_bytes()

    def feeds(self) -> dict[str, Array]:
        """Values to feed, in order."""
        return {
            feed["name"]: np.array(feed["values"], feed["dtype"]).reshape(feed["shape"]) for feed in self.info["feeds"]
        }


def error_cases(family: str) -> list[ErrorCase]:
    """The graphs of family "errors" or "errors2", without SavedModels."""
    folder = roots()[0] / family
    infos = json.loads((folder / f"{family}.json").read_text())
    return [ErrorCase(info, folder) for info in infos if info.get("kind", "graph") == "graph"]


@dataclass(frozen=True)
class ShapeCase:
    """The shapes that TensorFlow inferred for one graph; `path` is that of the case it is from."""

    path: str
    graph_file: Path
    file: Path

    @property
    def family(self) -> str:
        """The family: the first part of the path."""
        return self.path.partition("/")[0]

    @property
    def name(self) -> str:
        """The name inside the family."""
        return self.path.partition("/")[2]

    @cached_property
    def expected(self) -> dict[str, Any]:  # Any: JSON
        """Shapes and element types by node name, one per output."""
        shapes: dict[str, Any] = json.loads(read_bytes(self.file))
        return shapes

    def graph_def(self) -> GraphDef:
        """The graph, a new message each time."""
        return GraphDef.FromString(read_bytes(self.graph_file))


@cache
def shape_cases() -> list[ShapeCase]:
    """All graphs with inferred shapes, of the whole corpus if it exists."""
    root = roots()[0]
    lines = json.loads((root / "shapes" / "index.json").read_text())
    return [
        ShapeCase(line["graph"].removesuffix("/graph.pb"), root / line["graph"], root / "shapes" / line["file"])
        for line in lines
    ]


def size(case: Case | ErrorCase | ShapeCase) -> int:
    """The number of cases of this kind and family."""
    if isinstance(case, ShapeCase):
        return sum(other.family == case.family for other in shape_cases())
    return len(error_cases(case.family) if isinstance(case, ErrorCase) else cases(case.family))
