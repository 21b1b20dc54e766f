"""Lines of the tables of three Megatron papers on A100s -> their runs.

    table 5 of Korthikanti et al. 2022    two runs a line: "full", and "selective" with sequence parallelism
    memory of the same paper              one run a line, of a model of table 5; splits as there
    table 1 of Narayanan et al. 2021      one run a line, of which neither micro-batch nor interleaving is known

Table 1 has TFLOP/s of a GPU, where a step of B sequences of s tokens counts 96 B s l h^2 (1 + s / 6h + V / 16 l h)
operations, recomputed ones too (equation 3 there).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ....devices.calibration.tables import ColumnSpec, read_table
from ....devices.calibration.validation.rows import COUNT, TEXT
from ....errors import InvalidArgumentError, NotFoundError
from ....graph.suggestions import suggestion
from ...models.gpt import GptModel
from ...models.split import Recomputation, Split
from ..step import PlannedStep
from .machines import MEGATRON_PORTS, a100_machine
from .training_row import Quantity, TrainingRow
from .vtrain_tables import megatron_step

VOCABULARY = 51200
ADDED_BYTES, FUSED_BYTES = 12.0, 6.0
"""of a parameter and micro-batch: in 2021 a gradient of 16 bits was written (2) and added to one of 32 by a kernel
(2 + 4 + 4), in 2022 the product of the weights read and wrote 32 bits (8) in place of 16 (2)"""
OPTIMIZER_BYTES = 64.0
"""of a parameter: the update zeroes (4), scales (8), clips (8) and checks (8) gradients in kernels beside Adam's (28),
and copies masters to weights (6)"""
LENGTH = 2048
"""of table 1, which has no column of it"""
MICROBATCHES, INTERLEAVES = (1, 2, 4, 8, 16), (1, 2, 3, 4)
"""what a row of table 1 may have run with"""
FULL, SELECTIVE = "full_recompute_s", "seq_par_plus_selective_s"
STATE, ACTIVATIONS = "parameters_and_optimizer_gib", "activations_gib"
TFLOPS = "tflops_per_gpu"
TIMES_TABLE = "megatron_korthikanti2022_table5.csv"
STEP_KEYS: Mapping[str, str] = {
    "model": TEXT,
    **dict.fromkeys(("hidden", "heads", "layers", "seq_len", "gpus_A100_80", "tp", "pp"), COUNT),
    **dict.fromkeys(("interleave", "micro_batch", "batch"), COUNT),
}
MEMORY_KEYS: Mapping[str, str] = {"model": TEXT, "technique": TEXT}
SCALING_KEYS: Mapping[str, str] = {
    "params_B": TEXT,
    **dict.fromkeys(("heads", "hidden", "layers", "tp", "pp", "gpus_A100_80", "batch"), COUNT),
}
STEP_COLUMNS: Mapping[str, Quantity] = {FULL: "s", SELECTIVE: "s"}
MEMORY_COLUMNS: Mapping[str, Quantity] = {STATE: "state_gib", ACTIVATIONS: "activations_gib"}
SCALING_COLUMNS: Mapping[str, Quantity] = {TFLOPS: "tflops"}
TECHNIQUES: Mapping[str, tuple[bool, Recomputation]] = {
    "none": (False, "none"),
    "seq": (True, "none"),
    "sel": (False, "selective"),
    "seqsel": (True, "selective"),
    "full": (False, "full"),
}
"""sequence parallelism and recomputation, by the name that the table of memory has for them"""


def korthikanti_rows(cells: Mapping[str, str], _folders: Sequence[Path]) -> list[TrainingRow]:
    """Both runs of a line of table 5."""
    return [
        _korthikanti(cells, {column: "s"}, *TECHNIQUES[name])
        for column, name in ((FULL, "full"), (SELECTIVE, "seqsel"))
    ]


def korthikanti_memory_rows(cells: Mapping[str, str], folders: Sequence[Path]) -> list[TrainingRow]:
    """The run of a line of the table of memory; NotFoundError for a model that no table 5 in the folders has."""
    if cells["technique"] not in TECHNIQUES:
        known = ", ".join(TECHNIQUES)
        raise NotFoundError(f"technique {cells['technique']!r} is not known; it must be one of {known}")
    tables = [folder / TIMES_TABLE for folder in folders]
    models = {each["model"]: each for path in tables if path.is_file() for each in _lines(path)}
    if cells["model"] not in models:
        raise NotFoundError(
            f"model {cells['model']!r} has no sizes in {TIMES_TABLE}{suggestion(cells['model'], models)}"
        )
    return [_korthikanti(models[cells["model"]], MEMORY_COLUMNS, *TECHNIQUES[cells["technique"]])]


def _lines(path: Path) -> list[dict[str, str]]:
    kinds = {TEXT: "text", COUNT: "count"}
    table = read_table(path, [ColumnSpec(name, kinds[kind]) for name, kind in STEP_KEYS.items()])  # type: ignore[arg-type]  # kinds of cells by name
    return [{name: table.texts(name)[row] for name in STEP_KEYS} for row in range(len(table))]


def _korthikanti(
    cells: Mapping[str, str], columns: Mapping[str, Quantity], sequence_parallel: bool, recompute: Recomputation
) -> TrainingRow:
    size = {name: int(cells[name]) for name, kind in STEP_KEYS.items() if kind == COUNT}
    split = Split(
        dp=size["gpus_A100_80"] // (size["tp"] * size["pp"]),
        tp=size["tp"],
        pp=size["pp"],
        microbatch=size["micro_batch"],
        microbatches=size["batch"] * size["tp"] * size["pp"] // (size["gpus_A100_80"] * size["micro_batch"]),
        interleave=size["interleave"],
        sequence_parallel=sequence_parallel,
        recompute=recompute,
        precision="float16",
    )
    return TrainingRow(
        model=cells["model"],
        step=_step(size, size["seq_len"], FUSED_BYTES),
        splits=(split,),
        machine=a100_machine(split.devices, MEGATRON_PORTS),
        columns=columns,
    )


def _step(size: Mapping[str, int], length: int, accumulation_bytes: float) -> PlannedStep:
    gpt = _gpt(size, length)
    return megatron_step(gpt, length, accumulation_bytes=accumulation_bytes, optimizer_bytes=OPTIMIZER_BYTES)


def _gpt(size: Mapping[str, int], length: int) -> GptModel:
    return GptModel(
        layers=size["layers"], hidden=size["hidden"], heads=size["heads"], vocabulary=VOCABULARY, positions=length
    )


def narayanan_rows(cells: Mapping[str, str], _folders: Sequence[Path]) -> list[TrainingRow]:
    """The run of a line of table 1, with all splits that it may have had; InvalidArgumentError where there are none."""
    size = {name: int(cells[name]) for name, kind in SCALING_KEYS.items() if kind == COUNT}
    gpus, layers, hidden = size["gpus_A100_80"], size["layers"], size["hidden"]
    share = 1 + LENGTH / (6 * hidden) + VOCABULARY / (16 * layers * hidden)
    operations = 96 * size["batch"] * LENGTH * layers * hidden**2 * share
    return [
        TrainingRow(
            model=f"GPT {cells['params_B']}B",
            step=_step(size, LENGTH, ADDED_BYTES),
            splits=tuple(_candidates(size)),
            machine=a100_machine(gpus, MEGATRON_PORTS),
            columns=SCALING_COLUMNS,
            tflop_per_gpu=operations / gpus / 1e12,
        )
    ]


def _candidates(size: Mapping[str, int]) -> list[Split]:
    tp, pp, batch = size["tp"], size["pp"], size["batch"]
    dp = size["gpus_A100_80"] // (tp * pp)
    splits = []
    for microbatch in MICROBATCHES:
        microbatches, rest = divmod(batch, dp * microbatch)
        for interleave in INTERLEAVES if pp > 1 else (1,):
            if rest or size["layers"] % (pp * interleave) or (interleave > 1 and microbatches % pp):
                continue
            splits.append(
                Split(
                    dp=dp,
                    tp=tp,
                    pp=pp,
                    microbatch=microbatch,
                    microbatches=microbatches,
                    interleave=interleave,
                    recompute="full",
                    precision="float16",
                )
            )
    if not splits:
        raise InvalidArgumentError(
            f"batch {batch}: dp = {dp} does not divide it, or pp = {pp} the layers; correct the row"
        )
    return splits
