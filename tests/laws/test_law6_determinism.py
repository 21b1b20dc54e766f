"""Law 6: the same seed gives the same trace, byte for byte.

Partition graphs, timelines and random numbers depend only on the request and the seed: not on the session, the order in
which tasks ran, or the hash seed of the process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from hypothesis import assume, given, strategies as st

from partita.actors.sessions.local_session import open_session
from partita.devices.cluster import local_cluster
from partita.devices.timing.export.chrome import chrome_trace
from partita.devices.timing.simulate import simulate
from partita.errors import InvalidArgumentError
from partita.graph.attrs import encode
from partita.graph.dtypes import Array, DataType
from partita.graph.partition.options import PartitionOptions, name_counter
from partita.graph.partition.split import partition
from partita.graph.passes.client_graph import build_client_graph
from partita.graph.passes.client_request import ClientRequest
from partita.graph.protos import GraphDef
from partita.graph.tensor import numpy_to_tensor
from tests.runs import HARD_PLACEMENT, assert_same_values, cpus
from tests.strategies import GraphCase, cpu, placed_cases

EXAMPLE = Path(__file__).parents[2] / "scenarios" / "examples" / "mlp.pb"
CUT_AND_SIMULATE = """
import json, sys
from partita.actors.sessions.local_session import open_session
from partita.devices.timing.export.chrome import chrome_trace
from partita.devices.timing.simulate import simulate
from partita.graph.graphdef.files import load_graph_def
import trio

async def main():
    async with open_session(load_graph_def(sys.argv[1]), "cpu:1,gpu:2") as session:
        parts = session.prepare([], ["loss:0"]).partitions
        for device, part in parts.items():
            print(device, part.to_graph_def().SerializeToString(deterministic=True).hex())
        print(json.dumps(chrome_trace(simulate(parts, session.cluster))))

trio.run(main)
"""


def cut(case: GraphCase, placement: Mapping[str, str]) -> dict[str, GraphDef]:
    """Partition graphs of a request, from a fresh import."""
    client = build_client_graph(
        case.on(placement), ClientRequest(list(case.feeds), case.fetches, case.targets, device=cpu(0))
    )
    return partition(client, PartitionOptions(new_name=name_counter()))


def trace(case: GraphCase, placement: Mapping[str, str]) -> str:
    """The simulated timeline of a request as a Chrome trace."""
    shapes = {name: value.shape for name, value in case.feeds.items()}
    return json.dumps(chrome_trace(simulate(cut(case, placement), local_cluster(cpus(4)), feeds=shapes)))


@given(placed_cases())
def test_partitions_are_the_same_bytes(placed: tuple[GraphCase, dict[str, str]]) -> None:
    """Cutting twice gives the same files, in the same order of devices and nodes."""
    first, second = cut(*placed), cut(*placed)
    assert [(device, graph.SerializeToString(deterministic=True)) for device, graph in first.items()] == [
        (device, graph.SerializeToString(deterministic=True)) for device, graph in second.items()
    ]


@given(placed_cases())
def test_timelines_are_the_same_bytes(placed: tuple[GraphCase, dict[str, str]]) -> None:
    """Simulating twice gives the same trace."""
    try:
        first = trace(*placed)
    except InvalidArgumentError:  # a step in which nothing takes time is refused
        assume(False)
    assert trace(*placed) == first


def test_another_process_gives_the_same_bytes() -> None:
    """Partitions and timeline of the shipped example do not depend on the hash seed of the process."""
    outputs = []
    for seed in ("1", "2"):
        command = [sys.executable, "-c", CUT_AND_SIMULATE, str(EXAMPLE)]
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        outputs.append(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
    assert outputs[0] == outputs[1]
    assert '"traceEvents"' in outputs[0]


def random_graph() -> GraphDef:
    """Two random ops without seed attrs on two devices, and their sum on a third."""
    graph_def = GraphDef()
    shape = graph_def.node.add(name="shape", op="Const", device=cpu(0))
    shape.attr["dtype"].CopyFrom(encode(DataType.INT32, "type"))
    shape.attr["value"].tensor.CopyFrom(numpy_to_tensor(np.array([4, 3], np.int32)))
    for number in (1, 2):
        node = graph_def.node.add(name=f"random{number}", op="RandomUniform", input=["shape"], device=cpu(number))
        node.attr["dtype"].CopyFrom(encode(DataType.FLOAT, "type"))
        node.attr["T"].CopyFrom(encode(DataType.INT32, "type"))
    total = graph_def.node.add(name="sum", op="AddV2", input=["random1", "random2"], device=cpu(3))
    total.attr["T"].CopyFrom(encode(DataType.FLOAT, "type"))
    return graph_def


async def three_steps(seed: int) -> list[Array]:
    """The fetches of three steps of a session with a seed."""
    async with open_session(random_graph(), cpus(4), config=HARD_PLACEMENT, seed=seed) as session:
        return [value for _ in range(3) for value in await session.run(["random1:0", "random2:0", "sum:0"])]


@given(st.integers(1, 2**31 - 1), st.random_module())
async def test_a_seed_decides_all_random_numbers(seed: int, scheduling: object) -> None:
    """Sessions with equal seeds draw equal numbers in each step; other ops, steps and seeds draw others."""
    assert scheduling
    first = await three_steps(seed)
    assert_same_values(await three_steps(seed), first)
    assert len({value.tobytes() for value in first}) == len(first)
    assert (await three_steps(seed + 1))[0].tobytes() != first[0].tobytes()
