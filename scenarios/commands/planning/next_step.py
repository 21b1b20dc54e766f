"""The command that builds and simulates the graph of a plan, as lines for a shell.

    partita workload llama --config config.json --gpus H100-SXM:64 \\
      --set sequence_length=4096 --split dp=32,tp=2,microbatches=16 --simulate
"""

from __future__ import annotations

import shlex

from ...models.description import ModelDescription
from ...models.sizes import sizes_text
from ...models.split import Split
from ...models.split_text import split_text
from .flags import PlanFlags

_WIDTH = 76


def next_command(flags: PlanFlags, model: ModelDescription, split: Split, sequence_length: int) -> list[str]:
    """The lines; those before the last end with a backslash, so that a shell takes them as one."""
    config = sizes_text(model) if flags.config is None else str(flags.config)
    machines = ["--gpus", flags.gpus] if flags.gpus is not None else ["--cluster", str(flags.cluster)]
    parts = [["partita", "workload", flags.family], ["--config", config], machines]
    parts += [["--set", f"sequence_length={sequence_length}"], ["--split", split_text(split)]]
    if flags.imbalance not in (None, 1.0):
        parts.append(["--set", f"imbalance={flags.imbalance:g}"])
    if flags.unfused_attention:
        parts.append(["--set", "fused=no"])
    lines = [""]
    for part in map(shlex.join, [*parts, ["--simulate"]]):
        if lines[-1] and len(lines[-1]) + len(part) > _WIDTH:
            lines.append(f"  {part}")
        else:
            lines[-1] = f"{lines[-1]} {part}".lstrip() if len(lines) == 1 else f"{lines[-1]} {part}"
    return [*(f"{line} \\" for line in lines[:-1]), lines[-1]]
