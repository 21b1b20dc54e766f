"""Flags by name: command lines that click takes, paths, outputs, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest

from partita.errors import InvalidArgumentError
from partita.scenarios.commands.failure import ConfigurationError
from partita.scenarios.sweeps.axes import AxisValue
from partita.scenarios.sweeps.flag_axes import FlagNames
from partita.scenarios.swept_commands import SWEPT

VALUES: dict[str, dict[str, AxisValue]] = {
    "plan": {"family": "llama", "global-batch": 512, "split": "zero=1", "split.tp": 4, "dropout": True, "seq": False},
    "simulate": {
        "graph": "g.pb",
        "shape.x": "2,3",
        "shape": ("y=1", "z="),
        "inline": False,
        "no-tf32": False,
        "fetch": ("a", "b"),
    },
    "workload": {"name": "mlp", "set.layers": 3, "set.width": 8, "simulate": True, "config": None},
    "rewrite": {"graph": "-odd.pb", "replicate": 8, "out": "x.pb"},
}
LINES = {
    "plan": ["--global-batch=512", "--split=zero=1,tp=4", "--dropout", "--", "llama"],
    "simulate": [
        *("--shape=y=1", "--shape=z=", "--shape=x=2,3", "--no-inline", "--fetch=a", "--fetch=b", "--", "g.pb"),
    ],
    "workload": ["--set=layers=3", "--set=width=8", "--simulate", "--", "mlp"],
    "rewrite": ["--replicate=8", "--out=x.pb", "--", "-odd.pb"],
}


@pytest.mark.parametrize("command", VALUES)
def test_values_are_a_command_line(command: str) -> None:
    """Which click takes; names are those of the command."""
    names, values = FlagNames(command), VALUES[command]
    assert sorted(names.arguments(values)) == sorted(LINES[command])
    assert [names.checked(name.replace("-", "_")) for name in values] == list(values)
    names.check(values)


@pytest.mark.parametrize("command", sorted(SWEPT.commands))
def test_every_flag_but_json_can_be_swept(command: str) -> None:
    """Also the arguments."""
    names = FlagNames(command)
    for parameter in SWEPT.commands[command].params:
        flags = parameter.opts if isinstance(parameter, click.Option) else [parameter.name or ""]
        for flag in flags:
            if flag != "--json":
                assert names.checked(flag.removeprefix("--")) == flag.removeprefix("--")


@pytest.mark.parametrize(
    ("command", "name", "words"),
    [
        ("plan", "global-bach", "plan has no flag 'global-bach'; did you mean 'global-batch'"),
        ("plan", "json", "plan has no flag 'json'"),
        ("simulate", "seq", "simulate has no flag 'seq'"),
        ("plan", "seq.x", "--seq has no parts NAME=VALUE; write seq alone"),
    ],
)
def test_a_name_that_is_none_is_refused(command: str, name: str, words: str) -> None:
    """With the nearest."""
    with pytest.raises(InvalidArgumentError, match=words):
        FlagNames(command).checked(name)


def test_a_command_that_cannot_be_swept() -> None:
    """One without numbers, or without existence."""
    with pytest.raises(InvalidArgumentError, match="'simlate' cannot be swept; did you mean 'simulate'"):
        FlagNames("simlate")


@pytest.mark.parametrize(
    ("command", "values", "words"),
    [
        ("plan", {"family": "llama", "global-batch": 0}, "0 is not in the range"),
        ("plan", {"family": "lama"}, "'lama'"),
        ("plan", {"family": "llama", "seq": "many"}, "many"),
        ("plan", {}, "Missing argument"),
    ],
)
def test_values_are_checked_by_click(command: str, values: dict[str, Any], words: str) -> None:  # Any: values of flags
    """In its words."""
    with pytest.raises(ConfigurationError, match=words):
        FlagNames(command).check(values)


@pytest.mark.parametrize(
    ("values", "words"), [({"dropout": 1}, "write true or false, not 1"), ({"seq": True}, "which true is not")]
)
def test_switches_are_true_or_false_and_others_are_not(values: dict[str, Any], words: str) -> None:  # Any: likewise
    """False leaves any flag out."""
    with pytest.raises(InvalidArgumentError, match=words):
        FlagNames("plan").arguments(values)


def test_files_that_are_read_are_known(tmp_path: Path) -> None:
    """Of flags for paths, also folders, and of texts with NAME=FILE; not those that are written, or are not there."""
    for name in ("g.pb", "x.npy", "t.pb", "out.html"):
        (tmp_path / name).touch()
    values: dict[str, AxisValue] = {
        "graph": str(tmp_path),
        "feed": (f"x={tmp_path / 'x.npy'}", "y"),
        "costs": f"measured:{tmp_path / 't.pb'}",
        "cluster": str(tmp_path / "missing.toml"),
        "report": str(tmp_path / "out.html"),
        "calibration": ("x" * 5000,),
    }
    assert list(FlagNames("simulate").paths(values)) == [tmp_path, tmp_path / "x.npy", tmp_path / "t.pb"]


def test_paths_can_be_below_another_folder(tmp_path: Path) -> None:
    """Those that are there, and those that are written; texts stay."""
    (tmp_path / "g.pb").touch()
    values: dict[str, AxisValue] = {"graph": "g.pb", "report": "r.html", "cluster": "none.toml", "devices": "g.pb"}
    assert FlagNames("simulate").absolute(values, tmp_path) == {
        "graph": str(tmp_path / "g.pb"),
        "report": str(tmp_path / "r.html"),
        "cluster": "none.toml",
        "devices": "g.pb",
    }
