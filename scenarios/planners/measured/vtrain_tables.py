"""A line of the two tables of A100s by vTrain (VIA-Research/vTrain, MIT) -> its run.

    3.6,64,512,2,3072,32,30,2048,4,16,1    GPT of 30 layers of 3072 units on 8 nodes; tp 4, dp 16, 16 micro-batches of 2

All rows ran Megatron-LM with whole layers recomputed, the 1F1B schedule and no overlap: the all-reduce of gradients
follows the backward pass. The vocabulary is GPT-2's, padded. Gradients are accumulated over the micro-batches also
without a pipeline. Layers of that time had attention of several kernels, dropout, and a loss of float32 logits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ....devices.calibration.validation.rows import COUNT, TEXT
from ...models.gpt import GptModel
from ...models.split import Split
from ..step import PlannedStep
from .machines import VTRAIN_PORTS, a100_machine
from .training_row import Quantity, TrainingRow

GRADIENT_BYTES = 4
"""of an element of the gradients that data-parallel ranks add up"""
STEP = "iteration time (ms)"
COLUMNS: Mapping[str, Quantity] = {STEP: "ms"}
PARAMETERS, GPUS = "Parameters (billion)", "# GPUs"
_SIZES = (
    *(GPUS, "global batch", "micro batch", "hidden size", "attention heads", "# layers", "sequence length"),
    *("tensor parallelism", "data parallelism", "pipeline parallelism"),
)
ONE_NODE_KEYS: Mapping[str, str] = dict.fromkeys(_SIZES, COUNT)
MANY_NODES_KEYS: Mapping[str, str] = {PARAMETERS: TEXT, **ONE_NODE_KEYS}


def vtrain_rows(cells: Mapping[str, str], _folders: Sequence[Path]) -> list[TrainingRow]:
    """The run of a line; errors of `Split` for a batch that its ranks do not divide."""
    layers, hidden, length = (int(cells[name]) for name in ("# layers", "hidden size", "sequence length"))
    named = cells.get(PARAMETERS)
    model = GptModel(layers=layers, hidden=hidden, heads=int(cells["attention heads"]), positions=length)
    split = Split(
        dp=int(cells["data parallelism"]),
        tp=int(cells["tensor parallelism"]),
        pp=int(cells["pipeline parallelism"]),
        microbatch=int(cells["micro batch"]),
        recompute="full",
        precision="float16",
    )
    return [
        TrainingRow(
            model=f"GPT {named}B" if named else f"GPT {layers} x {hidden}",
            step=megatron_step(model, length),
            splits=(split.of_batch(int(cells["global batch"])),),
            machine=a100_machine(split.devices, VTRAIN_PORTS),
            columns=COLUMNS,
        )
    ]


def megatron_step(model: GptModel, length: int, **beside: float) -> PlannedStep:
    """A step of Megatron-LM on A100s, before it had flash attention; `beside` are fields of the step."""
    return PlannedStep(
        model,
        length,
        gradient_bytes=GRADIENT_BYTES,
        fused_attention=False,
        fused_loss=False,
        dropout=True,
        gathers_again=True,
        parts_transfers=True,
        recomputes_all=True,
        **beside,  # type: ignore[arg-type]  # numbers by name
    )
