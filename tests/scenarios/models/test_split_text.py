"""The text of a split is read back as the same split."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError
from partita.scenarios import Split
from partita.scenarios.models.split import OVERLAPS
from partita.scenarios.models.split_text import split_text


@st.composite
def splits(draw: st.DrawFn) -> Split:
    """Splits of all kinds whose fields do not contradict each other."""
    group = draw(st.sampled_from([1, 2, 4]))
    pp, interleave = draw(st.sampled_from([(1, 1), (2, 1), (2, 3), (4, 2)]))
    zero = draw(st.integers(0, 3 if pp == 1 else 2))
    count = pp * interleave
    return Split(
        dp=group * draw(st.integers(1, 3)),
        tp=draw(st.integers(1, 8)),
        pp=pp,
        cp=draw(st.integers(1, 4)),
        cp_kind=draw(st.sampled_from(["heads", "ring"])),
        microbatch=draw(st.integers(1, 4)),
        microbatches=pp * draw(st.integers(1, 4)),
        interleave=interleave,
        schedule=draw(st.sampled_from(["", "interleaved"] if interleave > 1 else ["", "1f1b", "gpipe"])),
        stages=draw(st.none() | st.tuples(*[st.integers(1, 5)] * count)),
        sequence_parallel=draw(st.booleans()),
        zero=zero,
        zero_group=draw(st.sampled_from([None, group])) if zero else None,
        recompute=draw(st.sampled_from(["none", "selective", "full", "products"])),
        overlap=tuple(draw(st.sets(st.sampled_from(OVERLAPS)))),
        precision=draw(st.sampled_from(["float32", "bfloat16", "fp8"])),
    )


@given(splits())
def test_a_split_is_read_back_from_its_text(split: Split) -> None:
    """Whatever its fields are."""
    assert Split.parse(split_text(split)) == split


@pytest.mark.parametrize(
    ("split", "text"),
    [
        (Split(), ""),
        (Split(tp=8, dp=2, sequence_parallel=True), "dp=2,tp=8,sequence_parallel"),
        (
            Split(pp=2, microbatches=2, stages=(3, 4), overlap=("tp", "dp")),
            "pp=2,microbatches=2,stages=3+4,overlap=tp+dp",
        ),
        (Split(pp=2, interleave=2, microbatches=2), "pp=2,microbatches=2,interleave=2"),
    ],
)
def test_what_is_usual_is_left_out(split: Split, text: str) -> None:
    """Fields with their defaults, and the schedule that follows from the others."""
    assert split_text(split) == text


def test_a_text_of_an_unknown_field_is_refused() -> None:
    """With the nearest name."""
    with pytest.raises(InvalidArgumentError, match="has no field 'tpp'; did you mean 'tp'"):
        Split.parse("tpp=2")
