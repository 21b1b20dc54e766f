"""Tables of deployments: what a row becomes, and predictions that see no measured cell."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from partita.devices.calibration.validation.validation import cross_validate, validate
from partita.scenarios.serving.fitting import fit_framework, said
from partita.scenarios.serving.frameworks import FrameworkNumbers
from partita.scenarios.serving.measured import measured_deployment, model_of_row
from partita.scenarios.serving.rates import PassSums
from partita.scenarios.serving.serving_set import LLM_SERVING

MODELS = """# made up
model,hidden_size,num_hidden_layers,num_attention_heads,num_key_value_heads,head_dim,intermediate_size,moe_intermediate_size,n_routed_experts,n_shared_experts,num_experts_per_tok,first_k_dense_replace,kv_lora_rank,q_lora_rank,qk_nope_head_dim,qk_rope_head_dim,v_head_dim,sliding_window,vocab_size
dense,4096,32,32,8,,14336,,,,,,,,,,,,128256
latent,3072,8,96,96,,8192,1024,64,1,4,1,512,1024,128,64,128,,32000
"""
COLUMNS = (
    "model,system,backend,backend_version,precision,gemm_quant,moe_quant,isl,osl,tp_size,pp_size,attention_dp_size,"
    "moe_tp_size,moe_ep_size,batch_size,concurrency,measured,ttft_ms,tpot_ms"
)


def row(**changes: str) -> dict[str, str]:
    """A row of the table, two of whose cells are empty."""
    cells = dict.fromkeys(COLUMNS.split(","), "1") | {
        "model": "dense",
        "system": "h100_sxm",
        "backend": "vllm",
        "backend_version": "",
        "precision": "fp8",
        "gemm_quant": "fp8",
        "moe_quant": "fp8",
        "isl": "1024",
        "osl": "256",
        "measured": "2026-04-22",
        "moe_ep_size": "0",
        "attention_dp_size": "",
        "batch_size": "8",
        "concurrency": "8",
    }
    return cells | changes


def write(folder: Path, rows: list[dict[str, str]]) -> Path:
    """A folder with both tables."""
    folder.mkdir()
    (folder / "llm_serving_models.csv").write_text(MODELS)
    with (folder / "llm_serving.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS.split(","))
        writer.writeheader()
        writer.writerows(rows)
    return folder


def drawn() -> list[dict[str, str]]:
    """Two frameworks, several loads; times grow with the load."""
    return [
        row(
            backend=backend,
            tp_size=str(tp),
            isl=str(prompt),
            batch_size=str(n),
            concurrency=str(n),
            ttft_ms=str(20 + prompt / 100 * n / tp),
            tpot_ms=str(5 + 10 / tp + n / 8),
        )
        for backend in ("vllm", "trtllm")
        for tp in (1, 2, 4)
        for prompt in (512, 2048)
        for n in (4, 16, 64)
    ]


def test_what_a_row_means(tmp_path: Path) -> None:
    """Empty and 0 cells are 1; heads that GPUs cannot share make replicas; requests without number are the batches."""
    models = write(tmp_path / "a", [row()]) / "llm_serving_models.csv"
    dense = measured_deployment(row(tp_size="4"), models)
    assert (dense.deployment.tp, dense.deployment.attention_dp, dense.deployment.weights) == (4, 1, "fp8")
    assert (dense.load.concurrency, dense.load.prompt, dense.load.answer) == (8, 1024, 256)
    sixteen = measured_deployment(row(precision="", gemm_quant=""), models).deployment
    assert (dense.deployment.cache, sixteen.cache, sixteen.weights) == ("fp8", "bf16", "bf16")
    wide = measured_deployment(row(model="latent", tp_size="64", moe_tp_size="8", moe_ep_size="8"), models).deployment
    assert (wide.tp, wide.attention_dp, wide.gpus) == (32, 2, 64)
    several = row(concurrency="", attention_dp_size="4", batch_size="16")
    assert measured_deployment(several, models).load.concurrency == 64
    assert model_of_row(models, "dense").head_size == 128


def test_numbers_come_out_again() -> None:
    """Three numbers that made up times are found."""
    draw = np.random.default_rng(0)
    sums = [
        PassSums(draw.uniform(4e6, 3e7), draw.uniform(2e7, 3e8), n, n * (1 + (i % 4 == 0)), 512)
        for i, n in enumerate(draw.uniform(1, 100, 40))
    ]
    true = FrameworkNumbers(0.85, 1.6, 0.25, 0, 0)
    found = fit_framework(sums, said(sums, true))
    assert found[:3] == pytest.approx(true[:3], rel=0.02)


def test_a_fold_sees_no_measured_cell(tmp_path: Path) -> None:
    """Predictions are the same numbers with measured cells emptied, and configurations stay together in a fold."""
    fit = write(tmp_path / "fit", drawn())
    full = write(tmp_path / "full", drawn()[::3])
    bare = write(tmp_path / "bare", [{**each, "ttft_ms": "", "tpot_ms": ""} for each in drawn()[::3]])
    answers = [validate(fit, folder, sets=[LLM_SERVING]).predictions[0].answer for folder in (full, bare)]
    for name, bounds in answers[0].columns.items():
        assert np.array_equal(bounds.value, answers[1].columns[name].value)
        assert np.all(np.isfinite(bounds.value))
    folds = LLM_SERVING.folds(LLM_SERVING.read(LLM_SERVING.paths(fit), False), 3)
    rows = LLM_SERVING.read(LLM_SERVING.paths(fit), False)
    for fold in folds:
        configurations = [
            {(rows.texts["backend"][i], rows.texts["isl"][i], rows.texts["tp_size"][i]) for i in of} for of in fold[1:]
        ]
        assert not configurations[0] & configurations[1]


def test_deployments_that_cannot_be_are_unknown(tmp_path: Path) -> None:
    """Weights that do not fit and unknown GPUs are rows without prediction; others are predicted."""
    rows = [*drawn(), row(system="gpu of tomorrow"), row(pp_size="2")]
    part = cross_validate(write(tmp_path / "a", rows), 3, sets=[LLM_SERVING]).parts[0]
    assert [part.answer.provenance.count("unknown")] == [2]
    assert part.answer.nulls["closed form"]["tpot_ms"].shape == (len(rows),)
