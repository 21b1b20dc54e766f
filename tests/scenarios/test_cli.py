"""Help, exit codes and error texts of the command line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from partita.scenarios.cli import cli
from partita.scenarios.commands.request import wanted_devices
from tests.scenarios.command_line import CommandLine, GraphFile, assert_one_clear_line

EXAMPLES = Path(__file__).parents[2] / "scenarios" / "examples"
FLAGS = ["--feed", "--feeds", "--fetch", "--target", "--devices", "--cluster"]
HEAVY = [
    "concurrent.futures",
    "distributed",
    "multiprocessing",
    "sqlite3",
    "numpy",
    "google",
    "trio",
    "rich",
    "partita.graph.graph",
    "partita.devices",
    "partita.actors",
    "partita.rendezvous",
]


@pytest.mark.parametrize("command", sorted(cli.commands))
def test_every_command_explains_itself(command: str, partita: CommandLine) -> None:
    """Its help names every flag it has and says what it does."""
    text = partita.done(command, "--help")
    flags = [flag for parameter in cli.commands[command].params for flag in parameter.opts if flag.startswith("--")]
    assert [flag for flag in flags if flag not in text] == []
    assert command in {
        "inspect",
        "scenario",
        "devices",
        "ops",
        "validate",
        "calibrate",
        "workload",
        "rewrite",
        "sweep",
        "plan",
        "report",
    } or set(FLAGS) <= set(flags)


def test_the_overview_lists_commands_and_exit_codes(partita: CommandLine) -> None:
    """`partita --help` is where people look first."""
    text = partita.done("--help")
    assert [word for word in [*cli.commands, "Exit codes"] if word not in text] == []


@pytest.mark.parametrize("command", ["run", "sweep"])
def test_help_imports_nothing_heavy(command: str) -> None:
    """Only click is needed to print help, which is why it is quick."""
    script = (
        "import sys, partita.scenarios; from partita.scenarios.cli import main\n"
        f"main(['{command}', '--help'])\n"
        f"print([m for m in {HEAVY} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("command", ["simulate", "show", "partition"])
def test_a_command_loads_the_passes_that_it_runs(command: str, tmp_path: Path) -> None:
    """Those of a partition, the compiler of plans and kernels of constants only if they are asked for."""
    heavy = ("partita.graph.passes.optimising.", "partita.actors.plans.", "partita.actors.running.evaluation")
    stage = {"partition": ["--out", str(tmp_path)], "show": ["--stage", "optimised"]}.get(command, [])
    arguments = [command, str(EXAMPLES / "mlp.pb"), *stage]

    def loaded(*flags: str) -> list[str]:
        script = (
            "import sys; from partita.scenarios.cli import main\n"
            f"main({[*arguments, *flags]})\n"
            f"print(*[m for m in sys.modules if m.startswith({heavy})])"
        )
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        return done.stdout.splitlines()[-1].split()

    assert loaded() == []
    assert {"partita.graph.passes.optimising.constant_folding", "partita.actors.running.evaluation"} <= set(
        loaded("--passes", "inline,fold")
    )


def test_the_module_is_the_command() -> None:
    """`python -m partita` is the same as `partita`; the exit code of the process is that of the command."""
    call = [sys.executable, "-m", "partita", "inspect", "no.pb"]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("partita: error: ")


def test_wrong_usage(partita: CommandLine) -> None:
    """No such command, no such flag, no argument, a bad number: one line each."""
    assert_one_clear_line(partita("frobnicate"), 2, "frobnicate")
    assert_one_clear_line(partita("run", "--frobnicate"), 2, "--frobnicate")
    assert_one_clear_line(partita("run"), 2, "GRAPH")
    assert_one_clear_line(partita("run", "g.pb", "--steps", "0"), 2, "--steps")
    assert_one_clear_line(partita("partition", "g.pb"), 2, "--out")


def test_a_bare_call_prints_the_help(partita: CommandLine) -> None:
    """As --help does, and it is no error."""
    assert partita.done() == partita.done("--help")


@pytest.mark.parametrize("command", ["run", "simulate", "inspect"])
def test_files_that_are_no_graph(command: str, partita: CommandLine, tmp_path: Path) -> None:
    """A file that is missing, damaged, empty or a folder is named."""
    (tmp_path / "noise.pb").write_bytes(b"\xff\xfe no graph \x00")
    (tmp_path / "noise.pbtxt").write_text("node {")
    (tmp_path / "empty.pb").write_bytes(b"")
    for name in ["missing.pb", "noise.pb", "noise.pbtxt", "empty.pb"]:
        assert_one_clear_line(partita(command, tmp_path / name), 2, name)
    assert_one_clear_line(partita(command, tmp_path), 2, tmp_path.name)


def test_a_graph_that_does_not_fit_together(partita: CommandLine, tmp_path: Path) -> None:
    """An input that does not exist is a configuration error, with the file and the node."""
    broken = GraphFile()
    broken.add("a", "NoOp", ["^nobody"])
    assert_one_clear_line(partita("run", broken.write(tmp_path, "broken.pb")), 2, "broken.pb", "nobody")


def test_feeds_that_are_wrong(partita: CommandLine, graph: Path, tmp_path: Path) -> None:
    """Syntax, name, file, element type, shape, twice, none at all."""
    good, archive = tmp_path / "good.npy", tmp_path / "feeds.npz"
    np.save(good, np.zeros((1, 3), np.float32))
    np.savez(archive, x=np.zeros((1, 3), np.float32), y=np.zeros(3))
    np.save(tmp_path / "double.npy", np.zeros((1, 3)))
    np.save(tmp_path / "square.npy", np.zeros((3, 2), np.float32))
    np.save(tmp_path / "objects.npy", np.array([{}], object), allow_pickle=True)
    (tmp_path / "text.npy").write_text("1 2 3")
    for text, words in {
        "=file": ["=file"],
        "x=": ["x="],
        f"z={good}": ["'z'", "placeholders are x"],
        f"x:1={good}": ["'x:1'"],
        f"x={tmp_path}/missing.npy": ["missing.npy"],
        f"x={tmp_path}/double.npy": ["'x'", "float64", "float"],
        f"x={tmp_path}/square.npy": ["'x'", "[3,2]", "[?,3]"],
        f"x={tmp_path}/objects.npy": ["objects.npy"],
        f"x={tmp_path}/text.npy": ["text.npy"],
        f"x={archive}": ["feeds.npz", "--feeds"],
        "x": ["'x'", "x=FILE.npy"],
    }.items():
        assert_one_clear_line(partita("run", graph, "--feed", text, "--devices", "cpu:2"), 2, *words)
    assert_one_clear_line(partita("run", graph, "--feeds", good, "--devices", "cpu:2"), 2, "good.npy", "--feed")
    assert_one_clear_line(partita("run", graph, "--feeds", archive, "--feed", f"x={good}"), 2, "'x'", "twice")
    assert_one_clear_line(partita("run", graph, "--devices", "cpu:2"), 2, "'x'", "float [?,3]", "--feed x=FILE.npy")


def test_devices_that_are_wrong(partita: CommandLine, graph: Path, tmp_path: Path) -> None:
    """A bad list, a bad file, both at once."""
    (tmp_path / "bad.toml").write_text("[[device]]\nspek = 'A100-80GB'\n")
    assert_one_clear_line(partita("run", graph, "--devices", "tpu:1"), 2, "tpu:1")
    assert_one_clear_line(partita("run", graph, "--devices", "c.toml"), 2, "c.toml", "--cluster")
    assert_one_clear_line(partita("run", graph, "--cluster", tmp_path / "none.toml"), 2, "none.toml")
    assert_one_clear_line(partita("run", graph, "--cluster", tmp_path / "bad.toml"), 2, "bad.toml", "spek")
    assert_one_clear_line(partita("run", graph, "--devices", "cpu:1", "--cluster", "c.toml"), 2, "--cluster")


def test_fetches_that_are_wrong(partita: CommandLine, graph: Path, x: str) -> None:
    """A node or an output that does not exist, a fetch that is fed."""
    run = ["run", graph, "--feed", x, "--devices", "cpu:2"]
    assert_one_clear_line(partita(*run, "--fetch", "nobody"), 2, "nobody")
    assert_one_clear_line(partita(*run, "--fetch", "y:7"), 2, "y")
    assert_one_clear_line(partita(*run, "--target", "nobody"), 2, "nobody")
    assert_one_clear_line(partita(*run, "--fetch", "x"), 2, "x")


def test_ops_without_kernel(partita: CommandLine, tmp_path: Path) -> None:
    """Exit code 3 names the op, registered or not; nodes that do not run do not matter."""
    graph = GraphFile()
    graph.add("reader", "LMDBReader")
    graph.add("c", "Const", dtype=1, value=np.float32(2))
    path = graph.write(tmp_path)
    assert_one_clear_line(partita("run", path), 3, "LMDBReader")
    assert partita("run", path, "--fetch", "c").code == 0
    graph.graph_def.node.add(name="odd", op="OpOfMine")
    assert_one_clear_line(partita("run", graph.write(tmp_path)), 3, "OpOfMine", "odd")


def test_a_run_that_fails(partita: CommandLine, tmp_path: Path) -> None:
    """Exit code 1 names node and op."""
    graph = GraphFile()
    graph.add("a", "Const", dtype=1, value=np.zeros((2, 3), np.float32))
    graph.add("b", "Const", dtype=1, value=np.zeros((4,), np.float32))
    graph.add("sum", "AddV2", ["a", "b"], T=1)
    assert_one_clear_line(partita("run", graph.write(tmp_path)), 1, "'sum'", "'AddV2'")


def test_tracebacks_are_for_those_who_ask(partita: CommandLine, graph: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PARTITA_DEBUG=1 prints a traceback before the one line."""
    monkeypatch.setenv("PARTITA_DEBUG", "1")
    result = partita("run", graph, "--devices", "tpu")
    assert result.code == 2
    assert "Traceback" in result.err
    assert result.err.splitlines()[-1].startswith("partita: error: ")


def test_without_a_flag_devices_are_those_of_the_graph() -> None:
    """The smallest machine with every requested device and at least a CPU; names of other kinds do not count."""
    assert wanted_devices([]) == "cpu:1"
    assert (
        wanted_devices(["", "/gpu:2", "/job:localhost/task:0/device:CPU:1", "nonsense", "/device:TPU:8"])
        == "cpu:2,gpu:3"
    )
    assert wanted_devices(["/gpu:2"], "cpu:7") == "cpu:7"
