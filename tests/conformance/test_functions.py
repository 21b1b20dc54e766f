"""Graphs with functions are lowered, inlined and cut as by TensorFlow.

Each case of family "functions" has two modes: `call` keeps calls of functions, `inline` inlines them; conditionals and
loops that request it are lowered in both. The lowered and placed graph equals TensorFlow's node for node, in order; the
graph of a request has its nodes and edges; partitions agree at L3, or at L2 where TensorFlow's names are not stable.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import pytest

from partita.devices import local_cluster
from partita.devices.pipeline import Pipeline, Placed
from partita.graph.partition.options import name_counter
from partita.graph.passes.selection import Passes
from partita.graph.protos import GraphDef
from tests.conformance.compare import compare
from tests.conformance.corpus import Case, cases, load_partitions, read_bytes
from tests.conformance.test_client_graph import listing, without_ids


@dataclass(frozen=True)
class Mode:
    """One case in one mode; `suffix` ends the names of its files and keys."""

    case: Case
    suffix: str

    @property
    def name(self) -> str:
        """The case and its mode."""
        return f"{self.case.name}-{self.suffix.strip('_') or 'call'}"

    @property
    def level(self) -> str:
        """The level at which partitions must agree."""
        return "L3" if self.case.info["stability"][f"L3{self.suffix}"] else "L2"

    @cached_property
    def theirs(self) -> GraphDef:
        """The graph lowered and placed by TensorFlow."""
        return GraphDef.FromString(read_bytes(self.case.folder / f"lowered{self.suffix}.pb.gz"))

    def placed(self) -> Placed:
        """The graph lowered and placed by Partita."""
        cluster = local_cluster(f"cpu:{len(self.case.devices)}")
        assert cluster.names == self.case.devices
        return (
            Pipeline(cluster, Passes.parse("inline" if self.suffix else "")).read(self.case.graph_def()).lower().place()
        )

    def requests(self) -> Iterator[tuple[int, Path, int]]:
        """Number, folder and counter of each step that was cut; none if TensorFlow cannot run the mode."""
        for number, step in enumerate(self.case.info["steps"]):
            folder = step.get(f"partitions{self.suffix}")
            if folder is not None and (number == 0 or folder.endswith(f"_s{number}")):
                yield number, self.case.folder / folder, step[f"name_counter_start{self.suffix}"] or 0


MODES = [Mode(case, suffix) for case in cases("functions") for suffix in ("", "_inline")]
DONE_BY_TENSORFLOW = [mode for mode in MODES if (mode.case.folder / f"lowered{mode.suffix}.pb.gz").exists()]


@pytest.mark.parametrize("mode", DONE_BY_TENSORFLOW, ids=lambda mode: mode.name)
def test_lowered_graph_equals_tensorflow(mode: Mode) -> None:
    """Names, ops, inputs, attrs, devices and order of all nodes equal TensorFlow's."""
    ours = mode.placed().graph.to_graph_def()
    assert [node.name for node in ours.node] == [node.name for node in mode.theirs.node]
    for mine, expected in zip(ours.node, mode.theirs.node, strict=True):
        assert (mine.op, mine.device, list(mine.input)) == (expected.op, expected.device, list(expected.input))
        assert mine.attr == expected.attr, mine.name


@pytest.mark.parametrize("mode", DONE_BY_TENSORFLOW, ids=lambda mode: mode.name)
def test_requests_are_cut_as_tensorflow_cuts_them(mode: Mode) -> None:
    """The graph and the partitions of every new step equal TensorFlow's."""
    placed = mode.placed()
    names = {node.name for node in placed.graph.op_nodes()}
    for number, folder, counter in mode.requests():
        step = mode.case.steps()[number]
        pipeline = replace(placed.pipeline, new_name=name_counter(counter))
        client = Placed(pipeline, placed.graph).prune(list(step.feeds), step.fetches, step.targets)
        nodes, edges = listing(client.graph)
        expected = read_bytes(folder / "raw" / "client.txt.gz").decode().splitlines()
        assert nodes == [line for line in expected if line.startswith("N")]
        assert without_ids(edges) == without_ids([line for line in expected if line.startswith("E")])
        ours = {device: part.to_graph_def() for device, part in client.cut().graphs.items()}
        for theirs in (load_partitions(folder), load_partitions(folder / "raw")):
            result = compare(theirs, ours, names)
            assert not theirs or result.agrees(mode.level), f"step {number}\n{result.report(mode.level)}"


def test_no_case_is_left_out() -> None:
    """Every case exists in both modes, unless TensorFlow cannot run one."""
    assert len(MODES) == 2 * len(cases("functions")) >= 2 * 11
    missing = [mode for mode in MODES if mode not in DONE_BY_TENSORFLOW]
    assert all(mode.case.info["errors"].get("inline") for mode in missing)
