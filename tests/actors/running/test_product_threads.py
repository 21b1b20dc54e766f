"""Steps with large products: same bytes for any number of helpers, and the host's BLAS threads come back."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import trio
from threadpoolctl import threadpool_info

from partita.actors import open_session
from partita.devices.kernels.blas_threads import LIMIT
from partita.devices.kernels.helpers import HELPERS
from partita.errors import InvalidArgumentError
from partita.graph.builder import GraphBuilder
from partita.graph.dtypes import Array
from partita.graph.protos import GraphDef
from tests.devices.kernels.blas import released
from tests.strategies import cpu

IN_THREADS: dict[str, Any] = {"budget_s": 0, "thread_limit_s": 0}  # from the second step on
IMAGES, FILTER, GRADIENT = (2, 64, 64, 16), (3, 3, 16, 32), (2, 64, 64, 32)
CONVOLVED: dict[str, Any] = {"strides": [1, 1, 1, 1], "padding": "SAME"}


@pytest.fixture
def helpers(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Sets the number of helpers for a test."""
    monkeypatch.setattr(HELPERS, "size", HELPERS.size)

    def use(size: int) -> None:
        HELPERS.size = size

    return use


def large(devices: int) -> GraphDef:
    """A product, a convolution of two images and its gradients: each takes over 400 us on one core."""
    builder = GraphBuilder()
    placed: dict[str, Any] = {"device": cpu(devices - 1)}
    a, b = (builder.placeholder(name, "float32", device=cpu(0)) for name in "ab")
    builder.op("MatMul", a, b, name="product", **placed)
    x, w, y = (builder.placeholder(name, "float32", device=cpu(0)) for name in "xwy")
    builder.op("Conv2D", x, w, name="convolved", **CONVOLVED, **placed)
    builder.op("Conv2DBackpropInput", list(IMAGES), w, y, name="to_input", **CONVOLVED, **placed)
    builder.op("Conv2DBackpropFilter", x, list(FILTER), y, name="to_filter", **CONVOLVED, **placed)
    return builder.graph_def()


FETCHES = ["product", "convolved", "to_input", "to_filter"]


def feeds() -> dict[str, Array]:
    rng = np.random.default_rng(0)
    shapes = {"a": (64, 1024), "b": (1024, 512), "x": IMAGES, "w": FILTER, "y": GRADIENT}
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


async def test_bytes_do_not_depend_on_helpers_runs_devices_or_threads(helpers: Callable[[int], None]) -> None:
    """Law 6: the cuts depend on shapes alone."""
    seen: dict[bytes, tuple[int, int, bool]] = {}
    for size in (0, 1, 3):
        helpers(size)
        for devices, in_threads in ((1, False), (1, True), (2, True)):
            async with open_session(large(devices), f"cpu:{devices}", **(IN_THREADS if in_threads else {})) as session:
                for _ in range(3 if in_threads else 1):
                    values = await session.run(FETCHES, feeds())
                    seen.setdefault(b"".join(value.tobytes() for value in values), (size, devices, in_threads))
    assert len(seen) == 1, seen.values()


async def test_convolutions_in_parts_equal_the_definition() -> None:
    """The parts fit together: y is the sum over the taps, and the gradients are adjoint to that."""
    fed = feeds()
    async with open_session(large(1)) as session:
        product, convolved, to_input, to_filter = await session.run(FETCHES, fed)
    x, w, y = (fed[name].astype(np.float64) for name in "xwy")
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    taps = [(i, j, padded[:, i : i + 64, j : j + 64]) for i in range(3) for j in range(3)]
    np.testing.assert_allclose(product, fed["a"].astype(np.float64) @ fed["b"], rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(convolved, sum(seen @ w[i, j] for i, j, seen in taps), rtol=1e-3, atol=1e-3)
    for i, j, seen in taps:
        np.testing.assert_allclose(to_filter[i, j], np.tensordot(seen, y, ((0, 1, 2),) * 2), rtol=1e-3, atol=1e-2)
    np.testing.assert_allclose(np.sum(to_input * x), np.sum(convolved * y), rtol=1e-3)


@pytest.fixture
def host() -> Any:
    """Checks after a test that BLAS has the threads that it had before."""
    released()
    before = threadpool_info()
    yield
    released()
    assert threadpool_info() == before


@pytest.mark.usefixtures("host")
async def test_the_host_has_its_threads_back_after_a_step() -> None:
    """While the session is still open."""
    async with open_session(large(1)) as session:
        await session.run(["product"], feeds())
        assert LIMIT.is_held
        await trio.to_thread.run_sync(released)


@pytest.mark.usefixtures("host")
async def test_the_host_has_its_threads_back_after_an_error() -> None:
    """Of a kernel that does not fit its inputs, after one that was computed."""
    async with open_session(large(1)) as session:
        with pytest.raises(InvalidArgumentError):
            await session.run(["product", "convolved"], {**feeds(), "w": np.ones((3, 3, 5, 1), np.float32)})


@pytest.mark.usefixtures("host")
async def test_a_cancelled_step_waits_for_the_parts_of_its_product(monkeypatch: pytest.MonkeyPatch) -> None:
    """No part writes after the step has ended, the host has its threads back, and the next step works."""
    run, running, scope = HELPERS.run, [], trio.CancelScope()

    def cancelled(function: Callable[[Any], Any], arguments: Any) -> list[Any]:
        def part(argument: Any) -> Any:
            running.append(argument)
            result = function(argument)
            running.remove(argument)
            return result

        trio.from_thread.run_sync(scope.cancel)
        return run(part, arguments)

    async with open_session(large(1), **IN_THREADS) as session:
        expected = [await session.run(["product"], feeds()) for _ in range(3)][-1]
        monkeypatch.setattr(HELPERS, "run", cancelled)
        with scope:
            await session.run(["product"], feeds())
        assert scope.cancelled_caught
        assert not running
        monkeypatch.setattr(HELPERS, "run", run)
        assert (await session.run(["product"], feeds()))[0].tobytes() == expected[0].tobytes()


@pytest.mark.usefixtures("host")
async def test_sessions_of_several_threads_share_the_limit() -> None:
    """Each in an event loop of its own; the limit goes when the last of them has ended."""
    values: list[bytes] = []

    async def work() -> None:
        async with open_session(large(1)) as session:
            values.extend([(await session.run(["product"], feeds()))[0].tobytes() for _ in range(3)])

    threads = [threading.Thread(target=trio.run, args=(work,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        await trio.to_thread.run_sync(thread.join)
    assert len(values) == 6
    assert len(set(values)) == 1


@pytest.mark.usefixtures("host")
async def test_a_session_without_products_leaves_blas_alone() -> None:
    """Neither taken nor held."""
    builder = GraphBuilder()
    builder.op("Neg", builder.placeholder("x", "float32"), name="y")
    async with open_session(builder.graph_def()) as session:
        await session.run(["y"], {"x": np.ones(1000, np.float32)})
        assert not LIMIT.is_held
