"""The report pages that tests open, made by the command line as users make them, each once in a process.

step       the README's example, its timeline beside it
compared   the same step beside one of slower GPUs that computes only the loss
measured   a RunMetadata of the step
plan       plans of a training run on eight GPUs, the first of them simulated
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from partita.devices.timing.timeline import Timeline
from partita.scenarios.cli import main

EXAMPLES = Path(__file__).parents[2] / "scenarios" / "examples"
GRAPH = EXAMPLES / "mlp.pb"
SLOWER = '[[device]]\nspec = "generic-cpu"\n[[device]]\nspec = "K80"\ncount = 2\n'


def partita(*arguments: object) -> None:
    """Runs a command that must succeed."""
    assert main([str(argument) for argument in arguments]) == 0


@dataclass(frozen=True)
class Reports:
    """Files in a folder, made when they are asked for."""

    folder: Path

    def file(self, name: str, make: Callable[[Path], None]) -> Path:
        """The file of that name; `make` writes it the first time."""
        path = self.folder / name
        if not path.exists():
            make(path)
        return path

    @cached_property
    def timeline(self) -> Timeline:
        """The step of the example."""
        return Timeline.load(self.saved)

    @cached_property
    def other_timeline(self) -> Timeline:
        """The step of the slower GPUs."""
        return Timeline.load(self.saved_other)

    @property
    def saved(self) -> Path:
        """The file of `timeline`."""
        return self.file("step.timeline", lambda path: partita("simulate", GRAPH, "--trace", path))

    @property
    def saved_other(self) -> Path:
        """The file of `other_timeline`."""
        cluster = self.file("slower.toml", lambda path: _write(path, SLOWER))
        words = ("simulate", GRAPH, "--fetch", "loss", "--cluster", cluster, "--trace")
        return self.file("other.timeline", lambda path: partita(*words, path))

    @property
    def step(self) -> Path:
        """The page of a simulation."""
        return self.file("step.html", lambda path: partita("simulate", GRAPH, "--report", path))

    @property
    def compared(self) -> Path:
        """The page of two steps."""
        words = ("report", self.saved, "--compare", self.saved_other, "--out")
        return self.file("compared.html", lambda path: partita(*words, path))

    @property
    def measured(self) -> Path:
        """The page of a RunMetadata."""
        metadata = self.file("step.pb", lambda path: partita("simulate", GRAPH, "--trace", path))
        return self.file("measured.html", lambda path: partita("report", metadata, "--out", path))

    @property
    def plan(self) -> Path:
        """The page of plans."""
        model = ("--config", EXAMPLES / "llama_3_8b.json")
        run = ("--gpus", "H100-SXM:8", "--global-batch", 8, "--seq", 512, "--split", "tp=8", "--simulate", 1)
        return self.file("plan.html", lambda path: partita("plan", "llama", *model, *run, "--report", path))

    def named(self, kind: str) -> Path:
        """The page of one of the kinds "step", "compared", "measured" and "plan"."""
        pages: dict[str, Path] = {kind: getattr(self, kind)}
        return pages[kind]


KINDS = ("step", "compared", "measured", "plan")


def _write(path: Path, text: str) -> None:
    path.write_text(text, "utf-8")
