"""Tables of measured training runs: what a line becomes, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from partita.errors import InvalidArgumentError, NotFoundError
from partita.scenarios import Split
from partita.scenarios.models.moe import MoeModel
from partita.scenarios.planners.measured.training_row import TrainingRow
from tests.scenarios.planners.measured.folders import (
    MANY_NODES,
    MEMORY,
    ONE_NODE,
    TABLE1,
    TABLE5,
    TABLE5_LINE,
    training_rows,
)

MODELS = (
    "model,hidden_size,head_num,kv_head_num,head_size,intermediate_size,moe_ffn_hidden_size,"
    "moe_shared_expert_intermediate_size,dense_layers,expert_num,topk,v_head_dim,qk_head_dim,qk_pos_emb_head_dim,"
    "q_lora_rank,kv_lora_rank,vocab_size"
)
SIMUMAX = (
    "case,model,layers,gpus,tp,pp,cp,ep,dp,micro_batch,micro_batches,seq_len,step_ms,peak_allocated_gib,"
    "simumax_step_ms,simumax_gib"
)


def read(folder: Path, name: str, *lines: str) -> list[TrainingRow]:
    """The rows of a file of these lines."""
    path = folder / f"{name}.csv"
    path.write_text("\n".join([*lines, ""]))
    return training_rows(path)


def test_a_header_may_begin_as_a_comment(tmp_path: Path) -> None:
    """One node of vTrain: columns by name, whatever their order; fewer GPUs than a node has are a smaller machine."""
    [row] = read(tmp_path, "llm_training_single_node_a100", ONE_NODE, "4,8,2,1024,16,12,1024,2,1,2,55.5")
    assert row.split == Split(tp=2, pp=2, microbatch=2, microbatches=4, recompute="full", precision="float16")
    assert (row.gpus, row.machine.devices, row.machine.hosts, row.global_batch) == (4, 4, 1, 8)
    assert (row.step.model.layers, row.step.sequence_length, row.step.fused_attention) == (12, 1024, False)
    assert (row.step_ms, row.model) == (55.5, "GPT 12 x 1024")


def test_columns_in_another_order_are_the_same_run(tmp_path: Path) -> None:
    """Many nodes: a port of 200 Gb/s for two GPUs; tensor parallelism over two nodes."""
    header = MANY_NODES.split(",")
    cells = ["3.6", "64", "512", "32", "3072", "32", "30", "2048", "16", "4", "1", "10580.6"]
    [row] = read(tmp_path, "llm_training_multi_node_a100", ",".join(header[::-1]), ",".join(cells[::-1]))
    assert (row.split.tp, row.split.dp, row.split.microbatches, row.model) == (16, 4, 4, "GPT 3.6B")
    assert (row.machine.hosts, row.machine.host_bytes_per_s, row.machine.port_bytes_per_s) == (8, 100e9, 25e9)


def test_experts_have_one_dense_layer_and_share_out_dp(tmp_path: Path) -> None:
    """SimuMax: a time and memory; the distributed optimizer; what that tool predicted is not read."""
    (tmp_path / "llm_models.csv").write_text(f"{MODELS}\nx,512,8,8,64,2048,256,256,3,16,4,64,64,32,96,128,32000\n")
    [row] = read(tmp_path, "llm_training_b200_megatron", SIMUMAX, "a,x,4,8,1,2,1,4,4,1,8,4096,771.6,114.0,1,1")
    model = row.step.model
    assert isinstance(model, MoeModel)
    assert (model.dense_layers, model.layers, row.split.zero, row.split.sequence_parallel) == (1, 4, 1, False)
    assert (row.split.ep, row.split.dp, row.split.microbatches, row.gpus) == (4, 4, 8, 8)
    assert row.measured == {"step_ms": 771.6, "peak_allocated_gib": 114.0}


def test_a_line_of_table_5_is_two_runs_and_names_the_model_of_its_memory(tmp_path: Path) -> None:
    full, selective = read(tmp_path, "megatron_korthikanti2022_table5", TABLE5, TABLE5_LINE)
    assert (full.split.recompute, full.split.sequence_parallel, full.step_ms) == ("full", False, 18130)
    assert (selective.split.recompute, selective.split.sequence_parallel, selective.step_ms) == (
        "selective",
        True,
        13750,
    )
    assert (full.split.interleave, full.split.microbatches, full.machine.port_bytes_per_s) == (3, 64, 25e9)
    assert full.of_step_ms("full_recompute_s", 18000.0) == 18.0
    [memory] = read(tmp_path, "megatron_korthikanti2022_memory", MEMORY, "175B,seqsel,32.9,26.5")
    assert memory.split == selective.split
    assert memory.measured == {"parameters_and_optimizer_gib": 32.9, "activations_gib": 26.5}
    with pytest.raises(NotFoundError, match="model '17B' has no sizes in megatron_korthikanti"):
        read(tmp_path, "megatron_korthikanti2022_memory", MEMORY, "17B,none,1,1")
    with pytest.raises(NotFoundError, match="technique 'all' is not known"):
        read(tmp_path, "megatron_korthikanti2022_memory", MEMORY, "175B,all,1,1")


def test_a_row_of_table_1_is_every_split_that_its_batch_allows(tmp_path: Path) -> None:
    """80 layers on 8 stages can be interleaved 2 times; 24 sequences a rank are cut into 1, 2, 4 or 8."""
    [row] = read(tmp_path, "megatron_narayanan2021_table1", TABLE1, "145.6,96,12288,80,8,8,1536,576,148,47,227.1")
    found = {(split.microbatch, split.interleave) for split in row.splits}
    assert found == {(1, 1), (1, 2), (2, 1), (4, 1), (8, 1)}  # interleaved micro-batches are multiples of 8
    assert {split.global_batch for split in row.splits} == {576}
    seconds = 96 * 576 * 2048 * 80 * 12288**2 * (1 + 2048 / 6 / 12288 + 51200 / 16 / 80 / 12288) / 1536 / 148e12
    assert row.step_ms == pytest.approx(seconds * 1000, rel=1e-12)
    assert row.of_step_ms("tflops_per_gpu", row.step_ms) == pytest.approx(148, rel=1e-12)


def test_a_batch_that_no_micro_batch_divides_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="batch 1000: dp = 32 does not divide it"):
        read(tmp_path, "megatron_narayanan2021_table1", TABLE1, "18.4,48,6144,40,8,1,256,1000,135,43,34.6")


def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    """A batch that ranks do not divide, and GPUs that are no whole nodes."""
    with pytest.raises(InvalidArgumentError, match="batch=9"):
        read(tmp_path, "llm_training_single_node_a100", ONE_NODE, "4,9,2,1024,16,12,1024,2,1,2,55.5")
    with pytest.raises(InvalidArgumentError, match="12 GPUs are no whole nodes of 8"):
        read(tmp_path, "llm_training_single_node_a100", ONE_NODE, "12,12,1,1024,16,12,1024,1,12,1,55.5")
