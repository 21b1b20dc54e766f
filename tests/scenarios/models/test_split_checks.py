"""Whether a split fits a model, a length and a cluster: the nearest values that work stand in every error."""

from __future__ import annotations

from dataclasses import replace

import pytest

from partita.errors import InvalidArgumentError, UnimplementedError
from partita.scenarios import BertModel, DlrmModel, GptModel, LlamaModel, ModelDescription, MoeModel, Split, VitModel
from tests.scenarios.models.families import GPT3, LLAMA3_8B, MIXTRAL, ROWS

DLRM = DlrmModel(13, (100,) * 6, 8, (16, 8), (16, 1))
VIT = VitModel(12, 768, 12, 3072, patch=32)  # 50 rows
BERT = BertModel(12, 768, 12, 3072)
V3 = MoeModel.from_row(ROWS, "deepseekv3", layers=61)


@pytest.mark.parametrize(
    ("split", "model", "length"),
    [
        (Split(tp=8, pp=16, dp=32, microbatches=64), GPT3, 2048),
        (Split(tp=32, sequence_parallel=True), LLAMA3_8B, 8192),  # 8 heads of keys, each on 4 ranks
        (Split(tp=4, cp=2, cp_kind="heads"), LLAMA3_8B, 8190),
        (Split(cp=2), LLAMA3_8B, 8192),
        (Split(dp=8, ep=8, tp=8), MIXTRAL, 4096),
        (Split(dp=64, ep=64, tp=128, pp=2, stages=(30, 31)), V3, 4096),
        (Split(dp=5), DLRM, 1),
        (Split(tp=3, pp=4), VIT, 1),
        (Split(tp=6, cp=2, cp_kind="heads"), BERT, 512),
    ],
)
def test_what_fits_is_not_warned_about(split: Split, model: ModelDescription, length: int) -> None:
    assert split.check(model, length, split.devices) == ()


@pytest.mark.parametrize(
    ("split", "model", "length", "message"),
    [
        (Split(tp=5), GPT3, 2048, "tp=5 does not divide heads=96; give tp=4 or 6"),
        (Split(tp=9), BERT, 512, "tp=9 does not divide heads=12; give tp=6 or 12"),
        (Split(tp=8), replace(GPT3, intermediate=100), 8, "tp=8 does not divide intermediate=100; give tp=4"),
        (
            Split(tp=6),
            LlamaModel(2, 48, 24, 48, 99, kv_heads=8),
            8,
            "tp=6 is neither a divisor nor a multiple of kv_heads=8; give tp=4 or 8",
        ),
        (Split(pp=3), LLAMA3_8B, 8, "= 3 does not divide 32 layers; give a product of 2 or 4"),
        (Split(dp=6, ep=6), MIXTRAL, 8, "ep=6 does not divide experts=8; give ep=2"),
        (Split(dp=2, ep=2), LLAMA3_8B, 8, "ep=2: LlamaModel has no experts; give ep=1"),
        (Split(dp=4, ep=4), DLRM, 1, "ep=4: DlrmModel has no experts; give ep=1"),
        (Split(tp=8), MIXTRAL, 12, "tp=8 does not divide the 12 rows .* the way to experts parts; give .*=8 or 16"),
        (Split(cp=3), LLAMA3_8B, 8192, r"2 \* cp = 6 does not divide .*=8192; give sequence_length=8190 or 8196"),
        (Split(cp=3, cp_kind="heads"), LLAMA3_8B, 8192, "cp=3 does not divide .* give sequence_length=8190 or 8193"),
        (
            Split(cp=6, cp_kind="heads"),
            LLAMA3_8B,
            6,
            'cp=6 cannot share .* 32 heads .* cp=4 or 8, or cp_kind="ring"',
        ),
        (Split(tp=4, cp=16, cp_kind="heads"), LLAMA3_8B, 16, "cp=16 cannot share .* 8 heads of a rank, 2 .* cp=8, or"),
        (
            Split(tp=8, sequence_parallel=True),
            LLAMA3_8B,
            1001,
            "tp=8 does not divide the 1001 rows .* sequence_parallel parts; give sequence_length=1000 or 1008",
        ),
        (
            Split(tp=2, cp=2, sequence_parallel=True),
            LLAMA3_8B,
            12,
            None,
        ),
        (
            Split(tp=8, cp=2, sequence_parallel=True),
            LLAMA3_8B,
            24,
            r"tp=8 does not divide the 12 rows .* give sequence_length=16 or 32",
        ),
        (Split(tp=2, sequence_parallel=True), VIT, 1, None),
        (Split(tp=4, sequence_parallel=True), VIT, 1, "tp=4 does not divide the 50 rows"),
        (Split(), GPT3, 2049, "sequence_length=2049 is more than the model's positions=2048"),
        (Split(), LLAMA3_8B, 0, "sequence_length=0 is no positive number"),
        (Split(tp=2), DLRM, 1, "tp=2: DlrmModel has nothing to cut by tp; give tp=1"),
        (Split(cp=2), DLRM, 1, "DlrmModel has no sequence to cut; give cp=1"),
        (Split(pp=2), DLRM, 1, "more stages than the 1 layers"),
    ],
)
def test_what_does_not_fit_is_told_what_does(
    split: Split, model: ModelDescription, length: int, message: str | None
) -> None:
    """None: it fits."""
    if message is None:
        assert split.check(model, length) == ()
        return
    with pytest.raises(InvalidArgumentError, match=message):
        split.check(model, length)


@pytest.mark.parametrize(
    ("split", "devices", "message"),
    [
        (
            Split(tp=8, dp=4),
            20,
            r"tp \* pp \* cp \* dp = 8 \* 1 \* 1 \* 4 = 32 devices, the cluster has 20; dp=2 needs 16",
        ),
        (Split(tp=8, dp=6, ep=2), 40, "the cluster has 40; dp=4 needs 32"),
        (Split(tp=8, pp=4), 16, r"the cluster has 16; give tp \* pp \* cp of at most 16"),
    ],
)
def test_more_devices_than_there_are(split: Split, devices: int, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        split.check(MIXTRAL, 8192, devices)


def test_fewer_devices_than_there_are_is_a_warning() -> None:
    (warning,) = Split(tp=8).check(LLAMA3_8B, 8192, 64)
    assert (
        warning == "tp * pp * cp * dp = 8 * 1 * 1 * 1 = 8 devices of the cluster's 64 are used; the others do nothing"
    )


def test_a_ring_has_no_window() -> None:
    """Unless the window sees the whole sequence."""
    model = LlamaModel(2, 16, 4, 40, 99, window=8)
    assert Split(cp=2).check(model, 8) == ()
    with pytest.raises(UnimplementedError, match="a ring has no window of attention"):
        Split(cp=2).check(model, 12)


def test_every_named_value_works() -> None:
    """What an error says to give is accepted: for all tp up to 40 of models with shared heads."""
    for heads, kv_heads in ((24, 8), (36, 6), (40, 5)):
        model = GptModel(1, heads * 2, heads), LlamaModel(1, heads * 2, heads, heads * 6, 99, kv_heads=kv_heads)
        for it in model:
            for tp in range(1, 41):
                try:
                    Split(tp=tp).check(it, 8)
                except InvalidArgumentError as error:
                    for near in error.message.rpartition("give tp=")[2].split(" or "):
                        assert Split(tp=int(near)).check(it, 8) == ()
