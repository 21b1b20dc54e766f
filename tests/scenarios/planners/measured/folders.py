"""Small tables of training runs, made by a formula, that tests write."""

from __future__ import annotations

from itertools import product
from pathlib import Path

from attrs import evolve

from partita.scenarios.planners.measured.training_row import TrainingRow
from partita.scenarios.planners.measured.training_tables import TABLES

ONE_NODE = (
    "# GPUs,global batch,micro batch,hidden size,attention heads,# layers,sequence length,tensor parallelism,"
    "data parallelism,pipeline parallelism,iteration time (ms)"
)
MANY_NODES = f"Parameters (billion),{ONE_NODE}"
TABLE5 = (
    "model,hidden,heads,layers,seq_len,gpus_A100_80,tp,pp,interleave,micro_batch,batch,full_recompute_s,"
    "seq_par_plus_selective_s,mfu_pct_recalled,hfu_pct_recalled"
)
TABLE5_LINE = "175B,12288,96,96,2048,64,8,8,3,1,64,18.13,13.75,51.4,52.8"
TABLE1 = "params_B,heads,hidden,layers,tp,pp,gpus_A100_80,batch,tflops_per_gpu,pct_peak,pflops"
MEMORY = "model,technique,parameters_and_optimizer_gib,activations_gib"


def one_node_lines(*, is_measured: bool = True) -> list[str]:
    """Two models on 2, 4 and 8 GPUs with several splits and a batch of 16."""
    lines = []
    for layers, gpus, tp, microbatch in product((8, 16), (2, 4, 8), (1, 2), (1, 2)):
        dp = gpus // tp
        ms = layers * (20 + 90 / gpus) * (1 + 0.2 * (tp > 1) + 0.1 * (microbatch == 1))
        cells = [gpus, 16, microbatch, 1024, 16, layers, 1024, tp, dp, 1, ms if is_measured else ""]
        lines.append(",".join(map(str, cells)))
    return lines


def write(folder: Path, **tables: list[str]) -> Path:
    """A folder with these tables, the header first."""
    folder.mkdir(exist_ok=True)
    for name, lines in tables.items():
        (folder / f"{name}.csv").write_text("\n".join([*lines, ""]))
    return folder


def training_rows(path: Path) -> list[TrainingRow]:
    """All runs of a file, which is named after its table; raises for a line that cannot be."""
    table = TABLES[path.stem]
    lines = table.read(path, may_be_empty=False)
    rows: list[TrainingRow] = []
    for i in range(len(lines)):
        cells = {name: column[i] for name, column in lines.texts.items()}
        runs = table.rows(cells, [path.parent])
        rows += [evolve(row, measured={name: float(lines.measured[name][i]) for name in row.columns}) for row in runs]
    return rows
