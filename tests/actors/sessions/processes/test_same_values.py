"""Real programs over four worker processes have the values of one process, to the bit, whatever is cut where."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from partita.actors import Session, open_session
from partita.graph.builder import GraphBuilder
from partita.graph.dtypes import Array, DataType
from partita.graph.graphdef.sources import GraphSource
from partita.graph.protos import ConfigProto
from partita.scenarios.models.llama import LlamaModel
from partita.scenarios.models.split import Split
from partita.scenarios.workloads.model_building import build_model
from partita.scenarios.workloads.model_step import ModelStep
from partita.scenarios.workloads.resnet50 import resnet50
from tests.actors.programs import Program, programs
from tests.actors.running.function_programs import FunctionProgram, function_programs
from tests.runs import HARD_PLACEMENT, assert_same_values
from tests.strategies import cpu

WORKERS = 4
SOFT = ConfigProto(allow_soft_placement=True)
LLAMA = LlamaModel(2, 16, 4, 24, 11, kv_heads=2, pad_vocabulary=1)
Steps = Callable[[Session], Awaitable[list[Array]]]


@pytest.fixture(scope="module")
def workers(dask: None) -> Iterator[str]:
    """The address of four worker processes."""
    from partita.actors.sessions.processes.local_cluster import start_local_cluster

    with start_local_cluster(WORKERS) as cluster:
        yield cluster.scheduler_address


async def assert_same(workers: str, graph: GraphSource, devices: str, steps: Steps, **how: Any) -> None:
    """What `steps` fetch from a session over the workers is what they fetch in one process; `how` is for both."""
    async with open_session(graph, devices, **how) as session:
        expected = await steps(session)
    assert expected
    async with open_session(graph, devices, workers=workers, **how) as session:
        assert_same_values(await steps(session), expected)


async def test_resnet50(workers: str) -> None:
    """All 16 blocks over four stages, two micro-batches."""
    images = np.random.default_rng(0).random((4, 32, 32, 3), np.float32)
    gpus = [f"/device:GPU:{number}" for number in range(WORKERS)]

    async def steps(session: Session) -> list[Array]:
        await session.run([], targets="initialise")
        return await session.run("logits", {"images": images})

    await assert_same(workers, resnet50(gpus, 32, 4, 2), "cpu:1,gpu:4", steps)


@pytest.mark.parametrize("split", [Split(dp=4), Split(dp=2, tp=2, zero=1), Split(dp=2, pp=2, microbatches=2)], ids=str)
async def test_training(workers: str, split: Split) -> None:
    """Losses and all weights after three steps, whose gradients are summed over the ranks by all-reduce."""
    built = build_model(LLAMA, split, "cpu:4", sequence_length=6)
    assert any(node.op.startswith("CollectiveReduce") for node in built.graph.op_nodes())
    weights = [part for name in built.weights for part in built.parts_of(name)]

    async def steps(session: Session) -> list[Array]:
        await session.run([], targets=built.initialise)
        losses: list[Array] = []
        for number in range(3):
            tokens = drawn_tokens(number, built.split.global_batch, 7)
            fed = built.feed(tokens=tokens[:, :-1], labels=tokens[:, 1:])
            losses += await session.run(built.fetches, fed, targets=built.targets)
        return losses + await session.run(weights)

    await assert_same(workers, built.graph, "cpu:4", steps)


def drawn_tokens(seed: int, *shape: int) -> Array:
    """Tokens of the vocabulary."""
    return np.random.default_rng(seed).integers(0, LLAMA.vocabulary, shape).astype(np.int32)


async def test_decoding(workers: str) -> None:
    """A prefill, and six tokens behind it, each the most likely one; caches of keys and values stay in the workers."""
    split = Split(dp=1, tp=2, pp=2, microbatch=2)

    def built(**given: Any) -> ModelStep:
        return build_model(LLAMA, split, "cpu:4", training=False, context=12, **given)

    prefill, decode = built(inference="prefill", sequence_length=4), built(inference="decode").prefixed("decode")

    async def steps(session: Session) -> list[Array]:
        await session.run([], targets=prefill.initialise)
        await session.extend(decode.graph)
        logits = await session.run(prefill.fetches, prefill.feed(tokens=drawn_tokens(0, 2, 4)), targets=prefill.targets)
        for _ in range(6):
            tokens = np.argmax(logits[-1], axis=-1).astype(np.int32).reshape(2, 1)
            logits += await session.run(decode.fetches, decode.feed(tokens=tokens), targets=decode.targets)
        return logits

    await assert_same(workers, prefill.graph, "cpu:4", steps)


async def test_drawn_numbers(workers: str) -> None:
    """With `seed` random ops without seeds draw the same on each device, step by step."""
    builder = GraphBuilder()
    for number in range(WORKERS):
        with builder.device(cpu(number)):
            shape = builder.constant([3], "int32")
            builder.op("RandomStandardNormal", shape, dtype=DataType.FLOAT, name=f"normal_{number}")
            builder.op("RandomUniform", shape, dtype=DataType.FLOAT, name=f"uniform_{number}")

    async def steps(session: Session) -> list[Array]:
        names = [f"{kind}_{number}" for kind in ("normal", "uniform") for number in range(WORKERS)]
        return [value for _ in range(3) for value in await session.run(names)]

    await assert_same(workers, builder, "cpu:4", steps, seed=11)


async def test_queues(workers: str) -> None:
    """Elements go in from one device and out on another, in order, step by step."""
    builder = GraphBuilder()
    x = builder.placeholder("x", "float32", (2,), device=cpu(0))
    queue = builder.op("FIFOQueueV2", name="queue", component_types=[DataType.FLOAT], capacity=8, device=cpu(1))[0]
    builder.op("QueueEnqueueV2", queue, [x], Tcomponents=[DataType.FLOAT], name="put", device=cpu(1))
    taken = builder.op("QueueDequeueV2", queue, component_types=[DataType.FLOAT], name="take", device=cpu(1))[0]
    builder.op("Square", taken, name="squared", device=cpu(3))

    async def steps(session: Session) -> list[Array]:
        for number in range(6):
            await session.run([], {"x": np.full(2, number, np.float32)}, "put")
        return [value for _ in range(6) for value in await session.run("squared")]

    await assert_same(workers, builder, "cpu:4", steps)


@settings(max_examples=12)
@given(case=function_programs(conflicting=True))
async def test_functions(workers: str, case: FunctionProgram) -> None:
    """Bodies request any device, and use variables on several."""

    async def steps(session: Session) -> list[Array]:
        await session.run([], targets=[case.init])
        return [value for _ in range(3) for value in await session.run(case.fetches, case.feeds)]

    await assert_same(workers, case.graph_def, "cpu:4", steps, config=SOFT)


@settings(max_examples=12)
@given(case=programs())
async def test_loops(workers: str, case: Program) -> None:
    """Loops in loops, whose bodies are spread over devices."""

    async def steps(session: Session) -> list[Array]:
        return [value for _ in range(2) for value in await session.run(case.fetches, case.feeds)]

    await assert_same(workers, case.graph_def, "cpu:4", steps, config=HARD_PLACEMENT)
