"""Splits: their texts, what follows from them, and the nearest values for fields that contradict each other."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields
from typing import Any

import pytest

from partita.errors import InvalidArgumentError, UnimplementedError
from partita.scenarios import Split


def test_a_text_names_fields() -> None:
    """Lists are joined by +, a flag may stand alone, and blanks do not matter."""
    text = "tp=8, pp=4,dp=2,microbatches=16,sequence_parallel,overlap=dp+tp,stages=9+10+10+9,precision=bfloat16"
    assert Split.parse(text) == Split(
        tp=8,
        pp=4,
        dp=2,
        microbatches=16,
        sequence_parallel=True,
        overlap=("tp", "dp"),
        stages=(9, 10, 10, 9),
        precision="bfloat16",
    )
    assert Split.parse("") == Split()
    assert not Split.parse("sequence_parallel=no").sequence_parallel


def test_every_field_has_a_text() -> None:
    """A field that is added must be read from its text too."""
    given = Split(
        dp=4,
        tp=2,
        pp=2,
        cp=2,
        cp_kind="heads",
        ep=2,
        microbatch=3,
        microbatches=4,
        interleave=2,
        schedule="interleaved",
        stages=(1, 2, 2, 1),
        sequence_parallel=True,
        zero=1,
        zero_group=2,
        recompute="selective",
        overlap=("tp", "ep"),
        precision="fp8",
    )
    default = Split()
    assert all(getattr(given, field.name) != getattr(default, field.name) for field in fields(Split))
    parts = {field.name: getattr(given, field.name) for field in fields(Split)}
    texts = [f"{name}={'+'.join(map(str, it)) if isinstance(it, tuple) else it}" for name, it in parts.items()]
    assert Split.parse(",".join(texts)) == given


def test_what_follows_from_the_degrees() -> None:
    split = Split(tp=8, pp=4, dp=2, cp=3, microbatch=5, microbatches=16)
    assert (split.devices, split.global_batch) == (192, 160)
    assert split.mesh.text == "pp:4,dp:2,cp:3,tp:8"
    with pytest.raises(FrozenInstanceError):
        split.dp = 3  # type: ignore[misc]  # what must not be possible


def test_a_global_batch_gives_the_micro_batches() -> None:
    """128 sequences on 4 ranks with 2 at a time are 16 micro-batches."""
    assert Split.parse("dp=4,microbatch=2,batch=128") == Split(dp=4, microbatch=2, microbatches=16)
    with pytest.raises(
        InvalidArgumentError, match=r"batch=30: dp \* microbatch = 4 \* 2 = 8 is no divisor; give 24 or 32"
    ):
        Split(dp=4, microbatch=2).of_batch(30)
    with pytest.raises(InvalidArgumentError, match=r"batch=3: .* give 8"):
        Split(dp=4, microbatch=2).of_batch(3)


def test_the_schedule_follows_from_interleave() -> None:
    assert Split(pp=2, microbatches=4).schedule == "1f1b"
    assert Split(pp=2, microbatches=4, interleave=2).schedule == "interleaved"
    assert Split(pp=2, microbatches=4, schedule="gpipe").schedule == "gpipe"


def test_stages_share_out_the_layers() -> None:
    """Equally, or as told."""
    assert Split(pp=4).stages_of(80) == (20, 20, 20, 20)
    assert Split(pp=2, interleave=2, microbatches=2).stages_of(8) == (2, 2, 2, 2)
    assert Split(pp=3, stages=(3, 4, 3)).stages_of(10) == (3, 4, 3)


@pytest.mark.parametrize(
    ("split", "layers", "message"),
    [
        (Split(pp=5), 32, r"pp \* interleave = 5 \* 1 = 5 does not divide 32 layers; give a product of 4 or 8, or the "
            r"layers of each stage: stages=6\+7\+7\+6\+6"),
        (Split(pp=4), 3, "more stages than the 3 layers"),
        (Split(pp=3, stages=(3, 4, 3)), 12, r"stages=\[3, 4, 3\] have 10 layers together, the model has 12; give 3"),
    ],
)  # fmt: skip
def test_layers_that_do_not_divide_are_told_what_does(split: Split, layers: int, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        split.stages_of(layers)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"dp": 0}, "dp=0 is no positive number"),
        ({"tp": True}, "tp=True is no positive number"),
        ({"microbatch": 1.0}, "microbatch=1.0 is no positive number"),
        ({"cp_kind": "rings"}, "cp_kind='rings' is none of heads, ring"),
        ({"recompute": "some"}, "recompute='some' is none of none, selective, full, products"),
        ({"precision": "int8"}, "precision='int8' is none of float32, bfloat16, float16, fp8"),
        ({"zero": 4}, "zero=4 is none of 0, 1, 2, 3"),
        ({"overlap": ("data",)}, "overlap='data' is no axis; known are tp, dp, pp, ep, cp"),
        ({"dp": 12, "ep": 5}, "ep=5 does not divide dp=12; give ep=4 or 6, or another dp"),
        ({"dp": 8, "zero": 1, "zero_group": 3}, "zero_group=3 does not divide dp=8; give zero_group=2 or 4"),
        ({"dp": 8, "zero_group": 4}, "zero_group=4: nothing is sharded; give zero=1, 2 or 3 too"),
        (
            {"pp": 4, "interleave": 2, "microbatches": 10},
            "pp=4 does not divide microbatches=10; give microbatches=8 or 12",
        ),
        ({"pp": 4, "interleave": 2, "microbatches": 3}, "give microbatches=4"),
        ({"interleave": 2}, "interleave=2 needs a pipeline; give pp=2 or more"),
        ({"pp": 2, "interleave": 2, "microbatches": 2, "schedule": "1f1b"}, "schedule '1f1b' has one stage per device"),
        ({"pp": 2, "stages": (3,)}, r"stages=\[3\] are 1, pp \* interleave is 2; give 2 numbers"),
        ({"pp": 2, "stages": (3, 0)}, "give 2 numbers of layers, each 1 or more"),
    ],
)
def test_fields_that_contradict_each_other(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        Split(**given)


def test_parameters_are_not_sharded_over_a_pipeline() -> None:
    """On one replica there is nothing to shard."""
    with pytest.raises(UnimplementedError, match="give zero=1 or 2, or pp=1"):
        Split(dp=2, pp=2, zero=3)
    assert Split(pp=2, zero=3).zero == 3


def test_a_schedule_is_one_that_is_registered() -> None:
    with pytest.raises(InvalidArgumentError, match=r"'1f1c'.*did you mean '1f1b'"):
        Split(pp=2, schedule="1f1c")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tpp=8", "split 'tpp=8' has no field 'tpp'; did you mean 'tp'"),
        ("tp=8,tp=4", "gives tp twice"),
        ("tp=eight", "tp='eight' is no whole number"),
        ("tp", "tp='' is no whole number"),
        ("stages=3+x", r"stages='3\+x' is no list of numbers, 9\+11"),
        ("sequence_parallel=maybe", "sequence_parallel='maybe' is no yes or no"),
        ("batch=8,microbatches=2", "gives batch and microbatches; one follows from the other"),
    ],
)
def test_a_text_that_is_no_split_is_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        Split.parse(text)
