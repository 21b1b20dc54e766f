"""Rendezvous keys: their text is exact, parsing inverts it, and malformed keys are refused."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError
from partita.rendezvous import Key
from partita.rendezvous.key import ROOT_FRAME, edge_of, frame_text, source, stem, stems

WORDS = st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,5}", fullmatch=True)
NUMBERS = st.integers(0, 10**6).map(str)
COMPONENTS = st.one_of(
    st.tuples(st.just("/job:"), WORDS | st.just("*")).map("".join),
    st.tuples(st.sampled_from(["/replica:", "/task:", "/cpu:", "/GPU:"]), NUMBERS | st.just("*")).map("".join),
    st.tuples(st.just("/device:"), WORDS, st.just(":"), NUMBERS).map("".join),
    WORDS.map("/device:{}".format),
)
DEVICES = st.lists(COMPONENTS, max_size=5).map("".join) | st.just("/")
EDGES = st.text(st.characters(exclude_characters=";", exclude_categories=["Cs"]), min_size=1, max_size=12)
IDS = st.integers(0, 2**64 - 1)
KEYS = st.builds(Key, DEVICES, IDS, DEVICES, EDGES, IDS, IDS)

SRC = "/job:mnist/replica:1/task:2/device:CPU:0"
DST = "/job:mnist/replica:1/task:2/device:GPU:0"


def test_the_text_of_a_key() -> None:
    """The incarnation is 16 lower-case hex digits, frame and iteration are decimal, in this order."""
    assert str(Key(SRC, 7890, DST, "var0", 3, 12)) == f"{SRC};0000000000001ed2;{DST};var0;3:12"
    assert str(Key(SRC, 7890, DST, "var0")).endswith(";var0;0:0")


@given(KEYS)
def test_parse_inverts_str(key: Key) -> None:
    """The text of a key has all its parts."""
    parsed = Key.parse(str(key))
    assert parsed == key
    assert (parsed.src_device, parsed.src_incarnation, parsed.dst_device) == (
        key.src_device,
        key.src_incarnation,
        key.dst_device,
    )
    assert (parsed.edge_name, parsed.frame_id, parsed.iter_id) == (key.edge_name, key.frame_id, key.iter_id)


@given(KEYS)
def test_a_key_equals_its_text(key: Key) -> None:
    """Each finds the other in a dict."""
    by_string: dict[object, int] = {str(key): 1}
    by_key: dict[object, int] = {key: 2}
    assert (by_string[key], by_key[str(key)]) == (1, 2)
    assert key != str(key) + "0"
    assert key != 7


@given(KEYS, st.integers(0, 99), st.integers(0, 99))
def test_a_stem_and_a_frame_make_a_key(key: Key, frame_id: int, iter_id: int) -> None:
    """For any iteration, and for stems of all functions that make them."""
    route = key.src_device, key.src_incarnation, key.dst_device
    other = Key(*route, key.edge_name, frame_id, iter_id)
    assert other == key.stem + frame_text(frame_id, iter_id)
    assert [key.stem] == [stem(*route, key.edge_name)] == stems([("", 0, ""), route], [(1, key.edge_name)])
    assert Key(*route, key.edge_name) == key.stem + ROOT_FRAME


@given(KEYS)
def test_source_and_tensor_are_read_from_the_text(key: Key) -> None:
    """`source` and `edge_of` agree with the parts of the key."""
    assert source(str(key)) == (key.src_device, key.src_incarnation)
    assert edge_of(str(key)) == key.edge_name


@pytest.mark.parametrize("odd", ["0:0:0", "x", "1:", ":1", "-1:2", " "])
def test_the_last_part_is_not_checked(odd: str) -> None:
    """Any last part is accepted; the ids are 0 if it is not `frame:iteration`."""
    text = f"{SRC};0000000000000001;{DST};e;{odd}"
    key = Key.parse(text)
    assert str(key) == text
    assert (key.frame_id, key.iter_id) == (0, 0)


def test_keys_of_different_texts_differ() -> None:
    """Also if the texts name the same device or the same incarnation."""
    assert Key("/cpu:0", 1, "", "e") != Key("/device:CPU:0", 1, "", "e")
    short = Key.parse(";1ED2;;e;0:0")
    assert short.src_incarnation == 7890
    assert short != Key("", 7890, "", "e")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "foobar",
        f"{SRC};0000000000000001;{DST};e",
        f"{SRC};0000000000000001;{DST};e;0:0;more",
        f"{SRC};0000000000000001;{DST};;0:0",
        f"{SRC};0000000000000001;{DST};e;",
        f"{SRC};;{DST};e;0:0",
        f"{SRC};xyz;{DST};e;0:0",
        f"{SRC};-1;{DST};e;0:0",
        f"foobar;0000000000000001;{DST};e;0:0",
        f"{SRC};0000000000000001;/foo:bar;e;0:0",
        f"/job:123/task:0;0000000000000001;{DST};e;0:0",
        f"/task:-1;0000000000000001;{DST};e;0:0",
        f"/device:gpu:;0000000000000001;{DST};e;0:0",
        f"/cpu;0000000000000001;{DST};e;0:0",
        f"{SRC}/extra;0000000000000001;{DST};e;0:0",
        f"//;0000000000000001;{DST};e;0:0",
        f"{SRC}\n;0000000000000001;{DST};e;0:0",
    ],
)
def test_a_malformed_key_is_refused(text: str) -> None:
    """With TensorFlow's message."""
    with pytest.raises(InvalidArgumentError) as caught:
        Key.parse(text)
    assert str(caught.value) == f"Invalid  rendezvous key: {text}"


@pytest.mark.parametrize(
    ("incarnation", "edge", "frame", "iteration"),
    [(-1, "e", 0, 0), (2**64, "e", 0, 0), (1, "", 0, 0), (1, "a;b", 0, 0), (1, "e", -1, 0), (1, "e", 0, -1)],
)
def test_parts_that_make_no_valid_text_are_refused(incarnation: int, edge: str, frame: int, iteration: int) -> None:
    """Such a key could not be parsed."""
    with pytest.raises(InvalidArgumentError, match="Invalid  rendezvous key"):
        Key(SRC, incarnation, DST, edge, frame, iteration)
