"""The flags of `partita plan`, as texts and numbers, and which of them exclude or need each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...executors.chosen import ExecutorChoice
from ...models.description import ModelDescription
from ..failure import ConfigurationError

_SUFFIXES = {"K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}
_TRAINING = {
    "global_batch": "--global-batch",
    "seq": "--seq",
    "search": "--search",
    "simulated": "--simulate",
    "gpu_counts": "--gpu-counts",
    "what_if": "--what-if",
    "tokens": "--tokens",
    "storage": "--storage",
    "gradient_bytes": "--gradient-bytes",
    "dropout": "--dropout",
    "unfused_attention": "--unfused-attention",
}
_INFERENCE = {"prompt": "--prompt", "output": "--output", "batch": "--batch", "tpot_ms": "--tpot-ms"}


@dataclass(frozen=True, slots=True)
class PlanFlags:
    """The flags of the command; `sizes` has those of the model by the names of its fields."""

    family: str
    config: Path | None = None
    cluster: Path | None = None
    gpus: str | None = None
    global_batch: int | None = None
    seq: int | None = None
    search: str | None = None
    split: str | None = None
    top: int = 10
    simulated: int = 0
    gpu_counts: str | None = None
    what_if: tuple[str, ...] = ()
    calibrations: tuple[Path, ...] = ()
    tokens: str | None = None
    storage: str | None = None
    gradient_bytes: str | None = None
    imbalance: float | None = None
    dropout: bool = False
    unfused_attention: bool = False
    inference: bool = False
    prompt: int | None = None
    output: int | None = None
    batch: str | None = None
    tpot_ms: float | None = None
    report: Path | None = None
    where: ExecutorChoice = field(default_factory=ExecutorChoice)
    """what makes the plans of --gpu-counts and simulates graphs"""
    command: str = ""
    """the line that was called, for the report"""
    sizes: Mapping[str, int] = field(default_factory=dict)

    def check(self) -> None:
        """ConfigurationError for flags that exclude each other, and for one that is missing."""
        if self.cluster is not None and self.gpus is not None:
            raise ConfigurationError("--cluster and --gpus exclude each other; give one of them")
        if self.cluster is None and self.gpus is None:
            raise ConfigurationError('no machines are given; add --gpus "H100-SXM:64", or --cluster FILE.toml')
        if self.config is not None and self.sizes:
            flag = size_flag(next(iter(self.sizes)))
            raise ConfigurationError(f"--config and {flag} exclude each other; leave one of them out")
        if self.inference:
            for flag in self._given(_TRAINING):
                raise ConfigurationError(f"{flag} is for training; leave it or --inference out")
        else:
            for flag in self._given(_INFERENCE):
                raise ConfigurationError(f"{flag} is for serving; add --inference, or leave it out")
        if self.where.first_given and not self.simulated and not self.gpu_counts:
            raise ConfigurationError(
                f"{self.where.first_given}: there is nothing to run elsewhere; add --simulate N or --gpu-counts LIST"
            )
        needed = ("prompt", "output") if self.inference else ("global_batch",)
        for name in needed:
            if getattr(self, name) is None:
                raise ConfigurationError(
                    f"{ {**_TRAINING, **_INFERENCE}[name] } is missing; give it, such as {_SUCH[name]}"
                )

    def _given(self, flags: Mapping[str, str]) -> Iterator[str]:
        return (flag for name, flag in flags.items() if getattr(self, name) not in (None, False, 0, ()))

    @property
    def run_tokens(self) -> float | None:
        """The tokens of a run: "15e12", "300B" or "1.5T"; ConfigurationError for another text."""
        if self.tokens is None:
            return None
        number, factor = self.tokens.strip().upper(), 1.0
        if number[-1:] in _SUFFIXES:
            number, factor = number[:-1], _SUFFIXES[number[-1]]
        try:
            tokens = float(number) * factor
        except ValueError:
            tokens = 0.0
        if not 0 < tokens < float("inf"):
            raise ConfigurationError(f"--tokens {self.tokens!r} is no number of tokens; write it as 300B or 1.5e12")
        return tokens

    @property
    def counts(self) -> tuple[int, ...]:
        """The numbers of `--gpu-counts`, ascending."""
        return tuple(sorted(set(whole_numbers("--gpu-counts", self.gpu_counts or ""))))

    @property
    def batches(self) -> tuple[int, ...] | None:
        """The numbers of `--batch`; None where it is left out."""
        return None if self.batch is None else whole_numbers("--batch", self.batch)

    def settings(self, model: ModelDescription) -> dict[str, Any]:  # Any: settings differ in type
        """The settings of a `PlannedStep` that flags give; ConfigurationError for an imbalance without experts."""
        settings: dict[str, Any] = {"dropout": self.dropout, "fused_attention": not self.unfused_attention}
        if self.gradient_bytes is not None:
            settings["gradient_bytes"] = int(self.gradient_bytes)
        if self.imbalance is not None:
            if self.imbalance != 1 and not model.shared_by_expert_parallel:
                raise ConfigurationError(f"--imbalance {self.imbalance:g}: {self.family} has no experts; leave it out")
            settings["imbalance"] = self.imbalance
        return settings


_SUCH = {"global_batch": "--global-batch 512", "prompt": "--prompt 2048", "output": "--output 256"}


def size_flag(name: str) -> str:
    """The flag of a size: "--kv-heads"."""
    return "--" + name.replace("_", "-")


def whole_numbers(flag: str, text: str) -> tuple[int, ...]:
    """The positive whole numbers of a text "8,16,32"; ConfigurationError for another text."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    for part in parts:
        if not part.isdecimal() or not int(part):
            raise ConfigurationError(f"{flag} {text!r}: {part!r} is no positive whole number; write {flag} 8,16,32")
    return tuple(map(int, parts))
