"""Every case with two or more devices, spread over two worker processes, ends as in one process.

Cases with values of TensorFlow are compared with those, as in the tests of one process. The corpus has other cases for
the sake of their partitions; they get values of ours to feed, and are compared, bit by bit, with a session in one
process. Of a case's devices every other one is in the other process, so that most of its edges cross.

One value differs, and has to: TensorFlow's session in one process fetches a reference of a variable, and shows what was
assigned after that. A reference travels as the value that it has when it leaves, and the test says which.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from partita.actors import open_session
from partita.actors.sessions.cluster_session import open_cluster_session
from partita.actors.sessions.session import Session
from partita.devices.cluster import Cluster, default_spec
from partita.devices.device import Device
from partita.errors import PartitaError
from partita.graph.device_name import parse_full_name
from partita.graph.dtypes import Array, DataType, numpy_dtype
from partita.graph.protos import NodeDef
from tests.conformance import test_partial_run, test_values
from tests.conformance.corpus import Case, cases, whole_corpus
from tests.runs import HARD_PLACEMENT, assert_same_values

if TYPE_CHECKING:
    from distributed import LocalCluster

pytest.importorskip("distributed", reason="distributed is not installed: pip install '.[dask]'")


def over_devices(families: Iterable[str]) -> list[Case]:
    """The cases of some families that have two or more devices."""
    return [case for family in families for case in cases(family) if len(case.devices) > 1]


WITH_VALUES = over_devices(test_values.FAMILIES)
# Fetches a reference of a variable, on another device than that, and assigns to the variable in the same step.
BY_REFERENCE = "stateful/ref_var_raw_edges"
PARTIAL_RUNS = over_devices(["partial_run"])
FED_BY_US = over_devices(["casts", "epochs", "gpu_partition", "tasks"])
# Where the values to feed do not fit together.
ENDS_WITH_AN_ERROR = {
    "casts/shapes_bf16_gpu",
    "casts/shapes_ctrl_gpu",
    "casts/shapes_int64_gpu",
    "epochs/all_preset_no_record",
    "epochs/shapes_gpu_n200_path",
    "epochs/shapes_gpu_n80_path",
    "gpu_partition/dup_key_on_host",
    "gpu_partition/feeds_fetches",
    "gpu_partition/rand_shapes_n1000_s109",
    "gpu_partition/rand_shapes_n40_s101",
    "gpu_partition/slices",
}


def spread(case: Case) -> dict[str, int]:
    """The worker of each device: in turn."""
    return {device: number % 2 for number, device in enumerate(case.devices)}


def crosses(case: Case) -> bool:
    """Whether TensorFlow recorded that a tensor is sent between devices that are in different processes here."""
    hosts = spread(case)
    files = (graph for step in case.steps() for graph in (*step.dump().values(), *step.raw().values()))
    return any(
        hosts[node.attr["send_device"].s.decode()] != hosts[node.attr["recv_device"].s.decode()]
        for graph in files
        for node in graph.node
        if node.op in ("_Send", "_HostSend") and not node.attr["client_terminated"].b
    )


def value_for(node: NodeDef) -> Array:
    """A value to feed in place of a node's output: sizes that are not known are 4."""
    shape = node.attr["shape"].shape
    sizes = [4, 4] if shape.unknown_rank else [4 if dim.size < 0 else dim.size for dim in shape.dim]
    dtype = numpy_dtype(DataType(node.attr["dtype" if node.op == "Placeholder" else "T"].type))
    numbers = np.arange(np.prod(sizes, dtype=int)).reshape(sizes) % 3
    return numbers.astype(bytes).astype(object) if dtype.kind == "O" else numbers.astype(dtype)


def devices_of(case: Case) -> Cluster:
    """The devices that the case names, of whatever tasks and kinds."""
    return Cluster([device_of(name) for name in case.devices])


def device_of(name: str) -> Device:
    """A device with the hardware that its kind has by default."""
    parsed = parse_full_name(name)
    assert parsed.is_full
    return Device(
        default_spec(parsed.type or ""),
        parsed.id or 0,
        job=parsed.job or "",
        replica=parsed.replica or 0,
        task=parsed.task or 0,
    )


def opened(case: Case, **settings: Any) -> AbstractAsyncContextManager[Session]:
    """A session of the case, with a worker for each task if it has several."""
    how = open_cluster_session if case.family == "tasks" else open_session
    return how(case.graph_def(), devices_of(case), config=HARD_PLACEMENT, **settings)


async def outcome(case: Case, **settings: Any) -> list[Array] | str:
    """What the steps of a case fetch that we feed, after others that initialise it; or the code of an error."""
    nodes = {node.name: node for node in case.graph_def().node}
    first = [name for name, node in nodes.items() if name.endswith("/Assign") or node.op.startswith("QueueEnqueue")]
    all_feeds = {name: value_for(node) for name, node in nodes.items() if node.op == "Placeholder"}
    values: list[Array] = []
    async with opened(case, seed=7, **settings) as session:
        try:
            for name in first:
                await session.run([], all_feeds, name)
            for step in case.steps():
                feeds = {name: value_for(nodes[name.partition(":")[0]]) for name in step.feeds}
                values += await session.run(step.fetches, feeds, step.targets)
        except PartitaError as error:
            return error.code  # of several nodes that fail, the one that is first depends on the processes
    return values


@pytest.mark.parametrize("case", WITH_VALUES, ids=lambda case: case.path)
async def test_values_equal_tensorflow(case: Case, cluster: LocalCluster) -> None:
    """Every fetch of every step has TensorFlow's value."""
    where: Any = {"workers": cluster.scheduler_address, "spread": spread(case)}  # Any: keywords of `open_session`
    if case.path == BY_REFERENCE:
        with pytest.raises(AssertionError, match=r"d:0: \[2. 3. 4.\] instead of \[3. 4. 5.\]"):
            await test_values.run_case(case, HARD_PLACEMENT, **where)
        return
    compared = await test_values.run_case(case, HARD_PLACEMENT, **where)
    assert compared == sum(len(step.fetches) for step in case.steps())


@pytest.mark.parametrize("case", PARTIAL_RUNS, ids=lambda case: case.path)
async def test_partial_runs_equal_tensorflow(case: Case, cluster: LocalCluster) -> None:
    """Every action of a case ends as in TensorFlow."""
    assert await test_partial_run.run_case(case, workers=cluster.scheduler_address, spread=spread(case)) > 1


@pytest.mark.parametrize("case", FED_BY_US, ids=lambda case: case.path)
async def test_values_equal_those_of_one_process(case: Case, cluster: LocalCluster) -> None:
    """To the bit, though sums of several devices meet on one."""
    expected = await outcome(case)
    ours = await outcome(case, workers=cluster.scheduler_address, spread=spread(case))
    if isinstance(expected, str) or isinstance(ours, str):
        assert ours == expected
    else:
        assert_same_values(ours, expected)
    assert isinstance(expected, str) == (case.path in ENDS_WITH_AN_ERROR)


def test_cases_send_between_processes() -> None:
    """None is left out, and most of them really send: of the whole corpus at least 159."""
    ran = [*WITH_VALUES, *PARTIAL_RUNS, *FED_BY_US]
    assert len(ran) == len({case.path for case in ran}) >= (207 if whole_corpus() else 60)
    recorded = [case for case in ran if case.family != "partial_run" and crosses(case)]
    assert len(recorded) >= (159 if whole_corpus() else 40), len(recorded)
