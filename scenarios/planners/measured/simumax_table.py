"""A line of the table of B200s by SimuMax (MooreThreads/SimuMax, Apache-2.0) -> its run.

    llama3_70b_tp2_pp1_dp4_l12_mbc4,llama3_70b,12,8,2,1,1,1,4,1,4,4096     12 layers of Llama-3 70B; tp 2, dp 4, zero 1

Sizes of models are in a table of models (llm_models.csv); models with experts, cut in layers, ran with one dense layer.
Megatron-LM 0.14 in bf16 with the distributed optimizer, sequence parallelism wherever tensor parallelism is, flash
attention, a fused cross entropy, heads exchanged for rows by context parallelism; no recomputation, overlap or dropout.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ....devices.calibration.validation.rows import COUNT, TEXT
from ....errors import NotFoundError
from ...models.llama import LlamaModel
from ...models.moe import MoeModel
from ...models.rows import read_row
from ...models.split import Split
from ..step import PlannedStep
from .machines import b200_machine
from .training_row import Quantity, TrainingRow

STEP, ALLOCATED = "step_ms", "peak_allocated_gib"
COLUMNS: Mapping[str, Quantity] = {STEP: "ms", ALLOCATED: "allocated_gib"}
KEYS: Mapping[str, str] = {
    **dict.fromkeys(("case", "model"), TEXT),
    **dict.fromkeys(("layers", "gpus", "tp", "pp", "cp", "ep", "dp", "micro_batch", "micro_batches", "seq_len"), COUNT),
}
MODELS = "llm_models.csv"
DENSE_LAYERS = 1
"""of a model with experts, all of which are cut to a few layers"""


def simumax_rows(cells: Mapping[str, str], folders: Sequence[Path]) -> list[TrainingRow]:
    """The run of a line; NotFoundError for a model that the first table of models in the folders lacks."""
    models = next((folder / MODELS for folder in folders if (folder / MODELS).is_file()), None)
    if models is None:
        raise NotFoundError(f"no {MODELS} is in {' or '.join(map(str, folders))}; it has the sizes of models")
    size = {name: int(cells[name]) for name, kind in KEYS.items() if kind == COUNT}
    split = Split(
        dp=size["dp"],
        tp=size["tp"],
        pp=size["pp"],
        cp=size["cp"],
        ep=size["ep"],
        cp_kind="heads",
        microbatch=size["micro_batch"],
        microbatches=size["micro_batches"],
        sequence_parallel=size["tp"] > 1,
        zero=1,
        precision="bfloat16",
    )
    return [
        TrainingRow(
            model=cells["model"],
            step=PlannedStep(_model(models, cells["model"], size["layers"]), size["seq_len"], gathers_again=True),
            splits=(split,),
            machine=b200_machine(split.devices),
            columns=COLUMNS,
        )
    ]


def _model(models: Path, name: str, layers: int) -> LlamaModel:
    row = read_row(models, name)
    if not row.texts.get("expert_num"):
        return LlamaModel.from_row(models, name, layers=layers)
    return MoeModel.from_row(models, name, layers=layers, dense_layers=DENSE_LAYERS)
