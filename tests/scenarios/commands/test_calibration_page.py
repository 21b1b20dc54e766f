"""docs/calibration.md: its commands, run one after the other in an empty folder, print what the page shows."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from partita.devices import load_calibration
from tests.scenarios.command_line import CommandLine

CHECKOUT = Path(__file__).parents[3]
BLOCK = re.compile(r"^```sh\n(.*?)^```\n\n```text\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"\d+(\.\d+)?(e[-+]?\d+)?")

FITTED = re.compile(r"(products|memory_bound)\.")


def shapes(text: str) -> list[str]:
    """Lines without numbers and spaces, of fitted numbers their names: fits differ by machine in some digits."""
    lines = [" ".join(NUMBER.sub("#", line).split()) for line in text.strip().splitlines()]
    return [line.split()[0] if FITTED.match(line) else line for line in lines]


def errors(text: str) -> dict[str, list[float]]:
    """Of each fit in a table of errors the error and those of its null models."""
    rows = (line.split() for line in text.splitlines() if line.startswith(("products ", "memory_bound ", "collect")))
    return {row[0]: [float(cell) for cell in row[2:] if cell != "-"] for row in rows}


def test_a_stranger_can_follow_the_page(
    partita: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Calibrating prints errors beside null models; simulating with the file is not the roofline; times are near."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    (tmp_path / "scenarios").symlink_to(CHECKOUT / "scenarios")
    blocks = BLOCK.findall((CHECKOUT / "docs" / "calibration.md").read_text("utf-8"))
    (calibrate, reported), (simulate, timed), (python, asked) = blocks
    printed = partita.done(*shlex.split(calibrate.replace("\\\n", " "))[1:])
    assert shapes(printed) == shapes(reported)
    for name, (error, *nulls) in errors(printed).items():
        assert [error, *nulls] == pytest.approx(errors(reported)[name], rel=0.15)
        assert error < nulls[0] / 5, name
    words = shlex.split(simulate.replace("\\\n", " "))[1:]
    fitted = partita.done(*words)
    assert shapes(fitted)[:3] == shapes(timed)[:3]
    assert fitted != partita.done(*words[: words.index("--costs")])
    capsys.readouterr()
    exec(shlex.split(python)[2], {"__name__": "example"})
    assert shapes(capsys.readouterr().out) == shapes(asked)


def test_the_log_gives_the_times_of_collectives(partita: CommandLine, tmp_path: Path) -> None:
    """An all-reduce between the sizes of the log takes what the formula of the log says, to some percent."""
    log, output = CHECKOUT / "scenarios/examples/calibration/all_reduce_perf.txt", tmp_path / "l4.toml"
    partita.done("calibrate", log, "--device", "L4", "--write", output, "--date", "2026-01-01")
    fits = load_calibration(output).device("L4")
    assert fits is not None
    assert fits.products is None
    said = fits.collectives.predict("all_reduce", 2, [3000, 3 << 20, 3 << 26])
    expected = [25e3 + size / 14 for size in (3000, 3 << 20, 3 << 26)]
    assert said.time_ns == pytest.approx(expected, rel=0.08)
    assert "all_reduce_perf.txt" in output.read_text("utf-8")
