"""Snapshots of datasets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from partita.actors import open_session
from partita.graph.builder import GraphBuilder
from partita.graph.builder.handles import Tensor
from partita.graph.dtypes import DataType
from tests.devices.kernels.datasets.pipelines import INT64, Pipeline, drained
from tests.devices.kernels.datasets.saved import FORM, path_of, with_functions
from tests.function_defs import func_attr, function_of


def snapshot(p: Pipeline, dataset: Tensor, folder: Path) -> Tensor:
    attrs: dict[str, Any] = {"shard_func": func_attr("halves"), "Tshard_func_args": [], "compression": b"AUTO"}
    reads: dict[str, Any] = {"reader_func": func_attr("joined"), "Treader_func_args": []}
    return p.op("SnapshotDatasetV2", dataset, path_of(folder), [], [], **attrs, **reads)


async def test_a_snapshot_is_computed_once(tmp_path: Path) -> None:
    """A variable that a mapped function reads counts when the snapshot is written; an unfinished pass writes none."""
    p = with_functions()
    kind: dict[str, Any] = {"dtype": INT64, "shape": ()}
    handle = p.b.op("VarHandleOp", name="v", attrs={**kind, "shared_name": b"v"})[0]
    for value in (10, 20, 30):
        p.b.op("AssignVariableOp", handle, np.int64(value), name=f"set{value}", attrs={"dtype": INT64})
    b = GraphBuilder()
    x, variable = b.placeholder("x", "int64", ()), b.placeholder("v", "resource", ())
    b.op("AddV2", x, b.op("ReadVariableOp", variable, attrs={"dtype": INT64})[0], name="sum")
    p.b.function(function_of("moved", b.graph_def(), ["x:0", "v:0"], ["sum:0"]))
    attrs: dict[str, Any] = {"f": func_attr("moved"), "Targuments": [DataType.RESOURCE]}
    mapped = p.op("MapDataset", p.range(3), [handle], **attrs)
    async with open_session(p.iterated(snapshot(p, mapped, tmp_path)), "cpu:1") as session:
        for value, limit, expected in ((10, 1, [10]), (20, 9, [20, 21, 22]), (30, 9, [20, 21, 22])):
            await session.run([], targets=[f"set{value}"])
            await session.run([], targets=["init"])
            assert await drained(session, limit) == expected


async def test_other_datasets_have_other_snapshots(tmp_path: Path) -> None:
    """In the same folder."""
    for name, expected in (("triple", [0, 3, 6]), ("halves", [0, 1, 0])):
        p = with_functions()
        first = p.mapped("MapDataset", p.range(3), "single")
        for number, dataset in enumerate((first, p.mapped("MapDataset", p.range(3), name))):
            attrs: dict[str, Any] = {**FORM, "shared_name": f"i{number}".encode(), "container": b""}
            handle = p.b.op("IteratorV2", name=f"it{number}", attrs=attrs)[0]
            p.b.op("MakeIterator", snapshot(p, dataset, tmp_path), handle, name=f"init{number}")
            p.b.op("IteratorGetNext", handle, name="next" if number else "other", attrs=FORM)
        async with open_session(p.b.graph_def(), "cpu:1") as session:
            await session.run([], targets=["init0", "init1"])
            for _ in range(3):
                await session.run("other")
            assert await drained(session) == expected
            await session.run([], targets=["init1"])
            assert await drained(session) == expected
