"""What was meant is found among few names and among very many, and never invented."""

from __future__ import annotations

from hypothesis import given, strategies as st

from partita.graph.suggestions import meant, nearest, suggestion

WORDS = st.text("abcxyz_/0123", min_size=1, max_size=8)


def test_case_and_scope_come_before_letters() -> None:
    """A name that only lacks its scope is preferred to one with similar letters."""
    assert nearest("Loss", ["lass", "loss"]) == "loss"
    assert nearest("loss", ["lass", "model/head/loss"]) == "model/head/loss"
    assert nearest("tower/loss", ["towel/lost", "loss"]) == "loss"
    assert nearest("labels:0", ["labels"]) == "labels"
    assert nearest("zzz", ["labels"]) is None


def test_texts() -> None:
    """The word that was meant, else the known words, shortened if there are many."""
    assert suggestion("lable", ["label", "loss"]) == "; did you mean 'label'?"
    assert suggestion("zzz", ["label", "loss"]) == "; known are label, loss"
    assert suggestion("zzz", [f"name{k}" for k in range(20)]).endswith("name7 and 12 more")
    assert meant("zzz", ["label"]) == ""


@given(WORDS, st.lists(WORDS, max_size=9))
def test_only_what_is_known_is_meant(word: str, known: list[str]) -> None:
    """A known word is itself what was meant."""
    match = nearest(word, known)
    assert match is None or match in known
    if word in known:
        assert (match or "").lower() == word.lower()


def test_a_slip_is_found_among_a_hundred_thousand() -> None:
    """Names that neither begin nor end alike are skipped."""
    known = [f"layer{k}/weights_{k % 7}" for k in range(100_000)]
    assert nearest("layer4711/weihgts_0", known) == "layer4711/weights_0"
    assert nearest("nothing like it", known) is None
