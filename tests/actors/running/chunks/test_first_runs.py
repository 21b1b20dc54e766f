"""The first run of a segment goes instruction by instruction; a kernel that may take long is in a thread at once."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest

from partita.actors import open_session
from partita.graph.builder import GraphBuilder
from partita.graph.protos import GraphDef
from tests.actors.gates import Gate
from tests.strategies import cpu

LARGE, SMALL = np.ones((3000, 3000), np.float32), np.ones(3, np.float32)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Gate:
    return Gate(monkeypatch)


def negated(devices: int) -> GraphDef:
    b = GraphBuilder()
    x = b.placeholder("x", "float32", device=cpu(0))
    b.op("Identity", b.op("Neg", x, device=cpu(devices - 1)), name="y", device=cpu(0))
    return b.graph_def()


@pytest.mark.parametrize("devices", [1, 2])
async def test_a_kernel_with_large_inputs_is_in_a_thread_in_the_first_step(gate: Gate, devices: int) -> None:
    async with open_session(negated(devices), f"cpu:{devices}", budget_s=0.001, thread_limit_s=0.001) as session:
        await session.run("y", {"x": LARGE})
    assert gate.threads
    assert threading.get_ident() not in gate.threads


@pytest.mark.parametrize("devices", [1, 2])
async def test_a_kernel_with_small_inputs_is_not(gate: Gate, devices: int) -> None:
    async with open_session(negated(devices), f"cpu:{devices}", budget_s=60, thread_limit_s=60) as session:
        await session.run("y", {"x": SMALL})
        await session.run("y", {"x": LARGE})
    assert gate.threads == {threading.get_ident()}


async def test_sizes_of_a_large_output_are_seen_beforehand(monkeypatch: pytest.MonkeyPatch) -> None:
    """The inputs of Fill are small; its shape function says how much it makes."""
    from partita.devices.kernels import registry

    threads = set()
    assert registry.lookup("Fill") is not None

    def fill(dims: np.ndarray, value: np.float32) -> np.ndarray:
        threads.add(threading.get_ident())
        return np.full(dims, value)

    monkeypatch.setitem(registry._FACTORIES, "Fill", lambda _node: fill)
    b = GraphBuilder()
    b.op("Fill", b.placeholder("sizes", "int32", (2,)), 1.0, name="filled")
    async with open_session(b.graph_def(), "cpu:1", budget_s=0.001, thread_limit_s=0.001) as session:
        assert (await session.run("filled", {"sizes": [2000, 3000]}))[0].shape == (2000, 3000)
        assert threading.get_ident() not in threads


async def test_a_kernel_with_a_constant_built_in_is_predicted_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The axes of a reduction are part of its kernel."""
    from partita.devices.kernels.reductions.narrow import reduce_extreme

    threads = set()

    def reduced(*arguments: Any) -> Any:
        threads.add(threading.get_ident())
        return reduce_extreme(*arguments)

    monkeypatch.setattr("partita.devices.kernels.reductions.reduction.reduce_extreme", reduced)
    b = GraphBuilder()
    b.op("Max", b.placeholder("x", "float32", (None, None)), [0, 1], name="most")
    async with open_session(b.graph_def(), "cpu:1", budget_s=0.001, thread_limit_s=0.001) as session:
        assert await session.run("most", {"x": LARGE}) == [1]
    assert threads
    assert threading.get_ident() not in threads


async def test_an_error_in_a_first_run_names_its_node() -> None:
    b = GraphBuilder()
    x = b.placeholder("x", "float32", (None,), device=cpu(0))
    for number in range(5):
        x = b.op("CheckNumerics", x * 1e30, message="too large", name=f"check{number}", device=cpu(number % 2))[0]
    async with open_session(b.graph_def(), "cpu:2") as session:
        with pytest.raises(Exception, match="check1") as caught:
            await session.run(x, {"x": [1.0]})
        assert getattr(caught.value, "node", None) == "check1"


async def test_steps_that_run_a_segment_first_at_the_same_time_agree(gate: Gate) -> None:
    """Both run it instruction by instruction; the chunks of the later one stay."""
    import trio

    got: list[np.ndarray] = []

    async with open_session(negated(2), "cpu:2", budget_s=0) as session:

        async def step(value: float) -> None:
            got.extend(await session.run("y", {"x": np.float32(value)}))

        async with trio.open_nursery() as nursery:
            for value in (1, 2, 3):
                nursery.start_soon(step, value)
    assert sorted(float(value) for value in got) == [-3, -2, -1]


_IMPORTS = """
import sys, threading
import numpy as np, trio
from partita.actors import open_session
from partita.graph.builder import GraphBuilder

b = GraphBuilder()
x = b.placeholder("x", "float32", (8, 784))
b.op("Relu", b.op("MatMul", x, np.ones((784, 128), np.float32)), name="y")

async def main():
    async with open_session(b.graph_def(), "cpu:1") as session:
        await session.prepare_in_thread(["x"], "y")
        sys.meta_path.insert(0, Finder(threading.get_ident()))
        await session.run("y", {"x": np.ones((8, 784), np.float32)})

class Finder:
    def __init__(self, loop):
        self.loop = loop

    def find_spec(self, name, path=None, target=None):
        assert threading.get_ident() != self.loop, name

trio.run(main)
"""


def test_a_first_step_loads_no_module_in_the_thread_of_the_event_loop() -> None:
    """What predicts kernels, and what limits the threads of BLAS, is loaded by the preparation or in a thread."""
    done = subprocess.run([sys.executable, "-P", "-c", _IMPORTS], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
