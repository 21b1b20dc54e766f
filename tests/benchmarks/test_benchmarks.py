"""Every benchmark runs on tiny sizes without peers; ratios, verdicts and saved files are right for made-up figures.

No time is judged.
"""

from __future__ import annotations

import sys
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
import trio
from click.testing import CliRunner
from rich.console import Console

from benchmarks.__main__ import CASES, main, measure
from benchmarks.bench import QUICK, Bench
from benchmarks.models import resnet50
from benchmarks.peers.process import Peer, PeerError, Peers
from benchmarks.rows import (
    IN_PLACE,
    IN_PROCESS,
    LOWERED,
    POOL,
    PUBLISHED,
    ROOFLINE,
    Case,
    Figure,
    Kind,
    Measured,
    Promise,
    Row,
    Skipped,
    limit,
    share,
    speed_up,
)
from benchmarks.running import check_equal
from benchmarks.table import load, quantity, save, slower, table
from benchmarks.workloads import Workload, called, chain, drawn, hops, nested, shaped
from partita.actors import BlockingSession
from partita.graph import GraphDef, tensor_to_numpy

STARTS_PROCESSES = (
    "process/",
    "processes/",
    "start/",
    "scale/",
    "import/memory",
    "simulate/1,024",
    "simulate/other shapes, cold",
    "simulate/nested functions, cold",
    "contended/",
    "plan/",
    "report page/",
    "sessions/longest gap",
    "sweep/",
)
IN_OTHER_PROCESSES = (", fresh process", ", busy cores")


def takes_long(key: str) -> bool:
    """Whether a row starts processes, or measures many others again."""
    return key.startswith(STARTS_PROCESSES) or key.endswith(IN_OTHER_PROCESSES)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """Tiny sizes, no interpreter to look for peers in."""
    peers = Peers()
    peers.pythons.clear()
    return Bench(QUICK, peers, tmp_path)


def row(ours: float, peer: float | None, promise: Promise | None, key: str = "a/row") -> Row:
    """A row of made-up figures."""

    async def measure(_: Bench) -> Measured:
        raise AssertionError("made-up rows are not measured")

    return Row(Case(key, "", promise, measure), Measured(Figure(ours), None if peer is None else Figure(peer)))


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, id=case.key, marks=[pytest.mark.slow] if takes_long(case.key) else []) for case in CASES],
)
def test_every_row_can_be_measured(case: Case, bench: Bench) -> None:
    """Without its peer a row has our figure, and no ratio unless the promise is about ours alone.

    A published figure is there without any peer, and so is one of our own.
    """
    try:
        measured = Row(case, trio.run(case.measure, bench))
    except Skipped as missing:
        pytest.skip(str(missing))
    assert isinstance(measured.measured.ours.value, float | int)
    if case.peer in (PUBLISHED, LOWERED, IN_PLACE, IN_PROCESS, ROOFLINE, POOL):
        assert measured.ratio() is not None
        return
    assert measured.measured.peer is None
    assert (measured.ratio() is None) == (case.promise is None or case.promise.kind is not Kind.LIMIT)


def test_keys_of_rows_are_unique() -> None:
    """`--only` and the saved figures tell rows apart by them."""
    keys = [case.key for case in CASES]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize(
    "workload",
    [chain(8), chain(8, (1,), devices=3), drawn(60, devices=4), hops(3), called(3), nested(3)],
    ids=lambda workload: workload.name,
)
def test_workloads_give_one_value(workload: Workload) -> None:
    """The request of a workload runs on as many devices as it says."""
    with BlockingSession(workload.data, f"cpu:{workload.devices}") as session:
        feeds = {name: np.full(shape, 0.5, np.float32) for name, shape in workload.feeds.items()}
        (value,) = session.run(workload.fetches, feeds, workload.targets)
    assert value.shape == workload.feeds["x:0"]


def test_ops_of_other_shapes_have_no_shape_twice() -> None:
    """Each vector is one element longer than the one before."""
    workload = shaped(8)
    with BlockingSession(workload.data, "cpu:1") as session:
        fetches = [f"{name}{index}:0" for index in range(4) for name in ("joined", "squared")]
        values = session.run(fetches, {"x:0": np.full((1,), 0.5, np.float32)})
    assert [len(value) for value in values] == [2, 2, 3, 3, 4, 4, 5, 5]


def test_workloads_are_the_same_every_time() -> None:
    """Same arguments, same bytes: figures of different days are about the same graph."""
    assert drawn(200, devices=8).data == drawn(200, devices=8).data
    assert resnet50(32, 8).data == resnet50(32, 8).data


def test_resnet50_has_its_parameters() -> None:
    """25.6 million trained parameters, as published, and 53 thousand statistics of batch norm."""
    graph = GraphDef.FromString(resnet50().data)
    weights = [tensor_to_numpy(node.attr["value"].tensor) for node in graph.node if "weight" in node.name]
    convolutions = sum(node.op == "Conv2D" for node in graph.node)
    assert convolutions == 53
    assert sum(weight.size for weight in weights) == 25_557_032 + 53_120


@pytest.mark.parametrize(
    ("ours", "peer", "promise", "ratio", "verdict"),
    [
        (1.0, 20.0, speed_up(8, 15), 20.0, "aim"),
        (1.0, 8.0, speed_up(8, 15), 8.0, "must"),
        (1.0, 7.9, speed_up(8, 15), 7.9, "below"),
        (1.0, 4.0, share(0.5, 0.25), 0.25, "aim"),
        (1.0, 2.0, share(0.5, 0.25), 0.5, "must"),
        (1.1, 2.0, share(0.5, 0.25), 0.55, "below"),
        (0.2, 9.0, limit(0.1), 0.2, "below"),
        (0.1, None, limit(0.1), 0.1, "must"),
        (1.0, None, share(0.5, 0.25), None, ""),
        (1.0, -2.0, share(0.5, 0.25), None, ""),
        (1.0, 2.0, None, 0.5, ""),
    ],
)
def test_verdicts(ours: float, peer: float | None, promise: Promise | None, ratio: float | None, verdict: str) -> None:
    """A ratio meets a promise on the line itself; without a peer, or with a figure below the noise, there is none."""
    judged = row(ours, peer, promise)
    assert judged.ratio() == pytest.approx(ratio)
    assert judged.verdict() == verdict


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.25e-6, "1.25 us"), (0.31, "310 ms"), (2.0, "2 s"), (-3e-9, "-3 ns"), (0.0, "0 ns"), (None, "")],
)
def test_quantities_have_three_digits_and_a_unit(value: float | None, text: str) -> None:
    """Prefixes keep numbers between 1 and 1000."""
    assert quantity(value, "s") == text


def test_saved_figures_tell_what_became_slower(tmp_path: Path) -> None:
    """A row that took a fifth longer than in the file is slower; a row that the file lacks is new."""
    save([row(1.0, 2.0, None, "same"), row(1.0, None, None, "worse")], tmp_path / "figures.json")
    earlier = load(tmp_path / "figures.json")
    rows = [row(1.1, 2.0, None, "same"), row(1.5, None, None, "worse"), row(9.0, None, None, "fresh")]
    assert slower(rows, earlier) == ["worse"]
    printed = StringIO()
    Console(width=150, file=printed).print(table(rows, baseline=earlier))
    missing = [word for word in ("1.10", "1.50 slower", "new") if word not in printed.getvalue()]
    assert not missing


def test_the_command_prints_rows_and_peers(tmp_path: Path) -> None:
    """One row, one line; the peers that are missing are named; the figures are saved."""
    done = CliRunner().invoke(main, ["--quick", "--only", "step/1 op", "--save", str(tmp_path / "figures.json")])
    assert done.exit_code == 0
    assert "step/1 op" in done.output
    assert "peers: " in done.output
    assert list(load(tmp_path / "figures.json")) == ["step/1 op"]


def test_figures_are_saved_row_by_row(bench: Bench, tmp_path: Path) -> None:
    """A run that is stopped, or fails in a later row, leaves those it has."""
    file, seen = tmp_path / "figures.json", []

    async def look(_: Bench) -> Measured:
        seen.append(list(load(file)) if file.exists() else [])
        if len(seen) > 2:
            raise ArithmeticError("the last row fails")
        return Measured(Figure(1.0))

    rows, failed = measure([Case(key, "", None, look) for key in ("a", "b", "c")], bench, file)
    assert seen == [[], ["a"], ["a", "b"]]
    assert ([row.case.key for row in rows], failed) == (["a", "b"], ["c"])
    assert list(load(file)) == ["a", "b"]


def test_a_row_that_cannot_be_measured_is_left_out(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    """It says what is missing, and is no failure."""

    async def skip(_: Bench) -> Measured:
        raise Skipped("no browser here")

    assert measure([Case("page/drawn", "", None, skip)], bench) == ([], [])
    assert "page/drawn: skipped, no browser here" in capsys.readouterr().err


def test_a_run_is_compared_with_a_baseline(tmp_path: Path) -> None:
    """A file of figures saved earlier: what is slower than in it is named."""
    save([row(1e-12, None, None, "step/1 op")], tmp_path / "quick.json")
    save([row(1e6, None, None, "step/1 op")], tmp_path / "slow.json")
    for file, said in (("quick.json", "step/1 op"), ("slow.json", "none")):
        done = CliRunner().invoke(main, ["--quick", "--only", "step/1 op", "--baseline", str(tmp_path / file)])
        assert done.exit_code == 0
        assert f"slower than the baseline: {said}" in done.output
        assert "against baseline" in done.output


def test_a_row_that_does_not_exist_is_refused() -> None:
    """The message lists the rows."""
    done = CliRunner().invoke(main, ["--only", "nothing"])
    assert done.exit_code == 2
    assert "import/C API" in done.output


def test_a_peer_answers_and_tells_what_went_wrong() -> None:
    """Requests go to a process and come back; what it prints is no answer; its errors carry their traceback."""
    peer = Peer(sys.executable, "tests.benchmarks.echo_peer")
    try:
        assert peer.call("echo", value=[1, {"a": None}]) == [1, {"a": None}]
        with pytest.raises(PeerError, match="ZeroDivisionError"):
            peer.call("fail")
        assert peer.call("echo", value="still there") == "still there"
    finally:
        peer.close()


def test_a_peer_that_ends_is_an_error() -> None:
    """The request fails at once: there can be no answer."""
    peer = Peer(sys.executable, "tests.benchmarks.echo_peer")
    with pytest.raises(PeerError, match="exit code 3"):
        peer.call("leave")
    peer.close()


def test_values_are_compared_before_times() -> None:
    """A peer with other values is an error."""
    ours = [np.array([[1.0, 2.0]], np.float32), np.array(np.inf, np.float32)]
    check_equal(ours, [[1.0, 2.0001], [np.inf]])
    with pytest.raises(AssertionError):
        check_equal(ours, [[1.0, 2.1], [np.inf]])
