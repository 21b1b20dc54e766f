"""Session.run: order and types of results, feeds, errors, cancellation, preparation."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import trio
from trio.testing import MockClock

from partita.actors import RunOptions, Session, open_session
from partita.actors.plans.compiler import compile_plans
from partita.actors.sessions import preparation, registered_graphs
from partita.devices.kernels import registry
from partita.devices.pipeline import Placed
from partita.errors import (
    CancelledError,
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
    PartitaError,
    UnimplementedError,
    UnknownError,
)
from partita.graph import Progress
from partita.graph.builder import GraphBuilder
from partita.graph.protos import ConfigProto, GraphDef
from tests.strategies import cpu


def chain(length: int = 3, devices: int = 2) -> GraphDef:
    """x -> n0 -> n1 ...: each node negates, on the next device."""
    builder = GraphBuilder()
    value = builder.placeholder("x", "float32", device=cpu(0))
    for i in range(length):
        value = builder.op("Neg", value, name=f"n{i}", device=cpu(i % devices))[0]
    return builder.graph_def()


async def run(graph_def: GraphDef, fetches: Any, feeds: Any = None, devices: str = "cpu:2", **more: Any) -> list[Any]:
    """One step in a session of its own."""
    async with open_session(graph_def, devices) as session:
        return list(await session.run(fetches, feeds, **more))


def replace_neg(monkeypatch: pytest.MonkeyPatch, kernel: Callable[[Any], Any]) -> None:
    """Makes `kernel` compute Neg."""
    assert registry.lookup("Neg") is not None  # loads the kernels before one is replaced
    monkeypatch.setitem(registry._FACTORIES, "Neg", lambda _node: kernel)


# Values


async def test_fetches_come_back_in_the_order_asked_with_their_duplicates() -> None:
    y = await run(chain(), ["n2:0", "n0", "n2", "n1:0"], {"x": np.float32(2)})
    assert [float(value) for value in y] == [-2.0, -2.0, -2.0, 2.0]


async def test_a_single_fetch_comes_back_in_a_list_too() -> None:
    (y,) = await run(chain(), "n0", {"x": 1.5})
    assert y.dtype == np.float32
    assert y.shape == ()
    assert y == np.float32(-1.5)


async def test_feeds_may_be_pairs_and_two_spellings_of_one_tensor_are_two_feeds() -> None:
    (y,) = await run(chain(1, 1), ["n0"], [("x:0", np.float32(2)), ("x", np.float32(3))])
    assert y == -2


async def test_inner_tensors_can_be_fed() -> None:
    (y,) = await run(chain(), ["n2"], {"n1:0": np.array([1, 2], np.float32)})
    assert y.tolist() == [-1, -2]


async def test_returned_arrays_are_read_only_and_do_not_share_memory_with_feeds() -> None:
    builder = GraphBuilder()
    builder.op("Identity", builder.placeholder("x", "float32"), name="y")
    fed = np.ones(3, np.float32)
    (y,) = await run(builder.graph_def(), "y", {"x": fed})
    assert not y.flags.writeable
    assert not np.shares_memory(y, fed)
    assert fed.flags.writeable


async def test_a_variable_does_not_share_memory_with_the_fed_array() -> None:
    builder = GraphBuilder()
    variable = builder.variable("v", "float32", (2,))
    builder.op("Assign", variable, builder.placeholder("x", "float32", (2,)), name="assign")
    builder.op("Identity", variable, name="read")
    async with open_session(builder.graph_def()) as session:
        fed = np.ones(2, np.float32)
        await session.run([], {"x": fed}, targets="assign")
        fed[:] = 7
        (value,) = await session.run("read")
        assert [float(v) for v in value] == [1, 1]


@pytest.mark.parametrize(
    ("dtype", "value", "expected"),
    [
        ("float32", 1, np.float32(1)),
        ("float32", [1, 2.5], np.array([1, 2.5], np.float32)),
        ("int64", [[1], [2]], np.array([[1], [2]], np.int64)),
        ("bool", True, np.bool_(True)),
        ("complex64", 1 + 2j, np.complex64(1 + 2j)),
        ("float32", [], np.array([], np.float32)),
    ],
)
async def test_python_values_become_the_type_of_the_tensor(dtype: str, value: Any, expected: Any) -> None:
    builder = GraphBuilder()
    builder.op("Identity", builder.placeholder("x", dtype), name="y")
    (y,) = await run(builder.graph_def(), "y", {"x": value})
    assert y.dtype == expected.dtype
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("value", ["a", b"a", ["a", b"bc"], np.array(["a", "bc"]), np.array([b"a"], object)])
async def test_strings_of_any_kind_become_bytes(value: Any) -> None:
    builder = GraphBuilder()
    builder.op("Identity", builder.placeholder("x", "string"), name="y")
    (y,) = await run(builder.graph_def(), "y", {"x": value})
    assert y.dtype == object
    assert all(type(item) is bytes for item in y.ravel().tolist())
    assert y.shape == np.shape(value)


# Errors


@pytest.mark.parametrize(
    ("value", "provided"), [(np.int32(2), "int32"), (np.float64(2), "double"), (True, "bool"), ("2", "string")]
)
async def test_a_fed_value_of_another_type_is_refused(value: Any, provided: str) -> None:
    with pytest.raises(InvalidArgumentError, match=rf"^Expects arg\[0\] to be float but {provided} is provided"):
        await run(chain(), "n0", {"x": value})


@pytest.mark.parametrize("value", [[[1], [2, 3]], object(), 300])
async def test_a_value_that_cannot_become_a_tensor_is_refused(value: Any) -> None:
    builder = GraphBuilder()
    builder.op("Identity", builder.placeholder("x", "uint8"), name="y")
    with pytest.raises(InvalidArgumentError, match=r"arg\[0\]"):
        await run(builder.graph_def(), "y", {"x": value})


@pytest.mark.parametrize(
    ("fetches", "feeds", "error", "message"),
    [
        (
            ["nope:0"],
            {},
            InvalidArgumentError,
            "Tensor nope:0, specified in either feed_devices or fetch_devices",
        ),
        (["n0"], {"x:-1": 1.0}, InvalidArgumentError, "Tensor x:-1:0, specified in either"),
        (["n0:1"], {}, OutOfRangeError, "Node 'n0' (type: 'Neg', num of outputs: 1) does not have output 1"),
        (["x:0"], {"x:0": 1.0}, InvalidArgumentError, "x:0 is both fed and fetched."),
        ([], {}, InvalidArgumentError, "Must specify at least one target to fetch or execute."),
        (["n0"], [("x", 1.0), ("x", 2.0)], InvalidArgumentError, 'Endpoint "x" fed more than once.'),
        (["n0"], {}, InvalidArgumentError, "You must feed a value for placeholder tensor 'x' with dtype float"),
    ],
)
async def test_wrong_requests_are_refused_with_messages_of_tensorflow(
    fetches: list[str], feeds: Any, error: type[PartitaError], message: str
) -> None:
    with pytest.raises(error) as caught:
        await run(chain(), fetches, feeds)
    assert caught.value.message.startswith(message)


async def test_an_unfed_placeholder_says_what_shape_it_has() -> None:
    builder = GraphBuilder()
    builder.op("Neg", builder.placeholder("x", "float32", (2, None)), name="y")
    with pytest.raises(InvalidArgumentError) as caught:
        await run(builder.graph_def(), ["y"])
    message = "You must feed a value for placeholder tensor 'x' with dtype float and shape [2,?]"
    assert caught.value.message == message


async def test_an_unknown_target_is_not_found() -> None:
    with pytest.raises(NotFoundError, match="PruneForTargets: Some target nodes not found: nope"):
        await run(chain(), [], targets=["nope"])


async def test_all_ops_without_kernel_are_named_at_once() -> None:
    builder = GraphBuilder()
    builder.op("LMDBReader", name="a", device=cpu(0))
    builder.op("TPUCompilationResult", name="b", device=cpu(0))
    with pytest.raises(UnimplementedError, match=r"LMDBReader, TPUCompilationResult.*'a'.*'b'"):
        async with open_session(builder.graph_def()) as session:
            await session.run([], targets=["a", "b"])


@pytest.mark.parametrize("devices", ["cpu:1", "cpu:2"])
async def test_the_error_of_a_kernel_says_where_and_the_session_goes_on(devices: str) -> None:
    builder = GraphBuilder()
    where = cpu(int(devices[-1]) - 1)
    x = builder.placeholder("x", "float32", device=cpu(0))
    builder.op("Reshape", x, builder.constant([2, 2], device=cpu(0)), name="y", device=where)
    async with open_session(builder.graph_def(), devices) as session:
        for step in (1, 3):
            with pytest.raises(InvalidArgumentError, match=r"^Input to reshape is a tensor with 3 values") as caught:
                await session.run("y", {"x": [1.0, 2.0, 3.0]})
            error = caught.value
            assert (error.node, error.op, error.device, error.step) == ("y", "Reshape", where, step)
            (y,) = await session.run("y", {"x": [1.0, 2.0, 3.0, 4.0]})
            assert y.tolist() == [[1, 2], [3, 4]]


async def test_a_foreign_exception_of_a_kernel_becomes_the_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(_value: Any) -> Any:
        raise ZeroDivisionError("oh")

    replace_neg(monkeypatch, failing)
    with pytest.raises(UnknownError, match="kernel of op 'Neg' raised ZeroDivisionError: oh") as caught:
        await run(chain(), "n2", {"x": 1.0})
    assert caught.value.node == "n0"
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


# The session as a context


@pytest.mark.parametrize(("owner", "stage"), [("_workers", "register"), ("_requests", "_prepare")])
async def test_a_session_that_closes_while_a_request_is_prepared_cancels_its_step(
    owner: str, stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the thread that prepares it, which has registered it, or is ready."""
    token = trio.lowlevel.current_trio_token()

    def then_close(*arguments: Any) -> Any:
        result = do(*arguments)
        token.run_sync_soon(session.close)
        return result

    async with open_session(chain(), "cpu:2") as session:
        do = getattr(getattr(session, owner), stage)
        monkeypatch.setattr(getattr(session, owner), stage, then_close)
        with pytest.raises(CancelledError, match=r"^Session has been closed"):
            await session.run("n2", {"x": 1.0})


async def test_a_closed_session_refuses_to_run() -> None:
    async with open_session(chain(devices=1)) as session:
        pass
    with pytest.raises(CancelledError, match=r"^Session has been closed"):
        await session.run("n0", {"x": 1.0})


@pytest.mark.parametrize("error", [KeyError("mine"), BaseException("mine too")])
async def test_exceptions_of_the_user_are_raised_unchanged(error: BaseException) -> None:
    with pytest.raises(type(error)) as caught:
        async with open_session(chain(devices=1)):
            raise error
    assert caught.value is error


async def test_a_cancellation_from_outside_is_passed_on() -> None:
    with trio.CancelScope() as scope:
        async with open_session(chain(devices=1)):
            scope.cancel()
            try:
                await trio.sleep_forever()
            except trio.Cancelled:
                cancelled_inside = True
                raise
    assert scope.cancelled_caught
    assert cancelled_inside


async def test_a_request_is_prepared_once() -> None:
    async with open_session(chain(), "cpu:2") as session:
        first = session.prepare(["x"], ["n2"])
        await session.run("n2", {"x": 1.0})
        assert session.prepare("x", "n2") is first
        assert session.prepare("x", "n1") is not first


async def test_generated_names_go_on_counting_over_requests() -> None:
    def transfers(session: Session, fetch: str) -> set[str]:
        partitions = session.prepare("x", fetch).partitions.values()
        return {node.name for part in partitions for node in part.op_nodes() if node.is_send or node.is_recv}

    async with open_session(chain(), "cpu:2") as session:
        assert transfers(session, "n1") == {"n0/_0", "n0/_1", "n1/_2", "n1/_3"}
        assert transfers(session, "n1:0") == {"n0/_4", "n0/_5", "n1/_6", "n1/_7"}


# Time limits and large requests


async def test_a_step_that_takes_longer_than_allowed_fails_and_the_session_goes_on(
    monkeypatch: pytest.MonkeyPatch, mock_clock: MockClock
) -> None:
    def slow(value: Any) -> Any:
        mock_clock.jump(0.001)
        return -value

    replace_neg(monkeypatch, slow)
    async with open_session(chain(200), "cpu:2", budget_s=0, thread_limit_s=60) as session:
        with pytest.raises(DeadlineExceededError, match="timeout_in_ms = 100"):
            await session.run("n199", {"x": 1.0}, options=RunOptions(timeout_in_ms=100))
        (y,) = await session.run("n199", {"x": 1.0}, options=RunOptions(timeout_in_ms=1000))
        assert y == 1
    config = ConfigProto(operation_timeout_in_ms=100)
    async with open_session(chain(200), "cpu:2", budget_s=0, thread_limit_s=60, config=config) as session:
        with pytest.raises(DeadlineExceededError, match="timeout_in_ms = 100"):
            await session.run("n199", {"x": 1.0})
        await session.run("n199", {"x": 1.0}, options=RunOptions(timeout_in_ms=1000))


async def test_a_request_on_a_large_graph_is_prepared_once_while_others_run() -> None:
    async def step(session: Session, fetch: str, expected: int) -> None:
        (y,) = await session.run(fetch, {"x": 1.0})
        assert y == expected

    async with open_session(chain(2500), "cpu:2") as session:
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(step, session, "n1999", 1)
                nursery.start_soon(step, session, "n0", -1)
        assert session.statistics().requests == 2


async def test_another_thread_is_refused() -> None:
    """Its event loop would wait forever."""
    async with open_session(chain(2), "cpu:2") as session:
        with pytest.raises(FailedPreconditionError, match="event loop of another thread"):
            await trio.to_thread.run_sync(partial(trio.run, session.run, "n1", {"x": 1.0}))
        assert await session.run("n1", {"x": 1.0}) == [1.0]


async def test_the_import_of_a_large_graph_can_be_cancelled() -> None:
    """Its thread ends at the next report of progress."""
    counts: list[int] = []
    with trio.CancelScope() as scope:

        def on_progress(progress: Progress) -> None:
            counts.append(progress.done)
            trio.from_thread.run_sync(scope.cancel)

        async with open_session(chain(20_000).SerializeToString(), "cpu:2", on_progress=on_progress):
            pytest.fail("it was imported whole")
    assert scope.cancelled_caught
    assert len(counts) == 1


async def test_the_preparation_of_a_large_request_can_be_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its thread ends after the running stage; the next request is prepared as usual."""
    stages: list[str] = []
    prune = Placed.prune
    monkeypatch.setattr(preparation, "_LARGE", 0)
    async with open_session(chain(), "cpu:2") as session:
        with trio.CancelScope() as scope:

            def cut_out(*arguments: Any, **more: Any) -> Any:
                stages.append("cut out")
                trio.from_thread.run_sync(scope.cancel)
                return prune(*arguments, **more)

            def compiled(*arguments: Any, **more: Any) -> Any:
                stages.append("compiled")
                return compile_plans(*arguments, **more)

            monkeypatch.setattr(Placed, "prune", cut_out)
            monkeypatch.setattr(registered_graphs, "compile_plans", compiled)
            await session.run("n0", {"x": 1.0})
        assert scope.cancelled_caught
        assert stages == ["cut out"]
        monkeypatch.setattr(Placed, "prune", prune)
        assert await session.run("n0", {"x": 1.0}) == [-1]
        assert stages == ["cut out", "compiled"]
