"""Device names: each legal spelling means what TensorFlow says, printing undoes parsing, constraints form an order."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError
from partita.graph.device_name import (
    ParsedName,
    are_compatible,
    canonicalize,
    complete,
    find_full_name,
    find_local_name,
    full_name,
    is_complete_specification,
    is_same_address_space,
    is_specification,
    legacy_full_name,
    local_names_for_device_mappings,
    merge,
    names_for_device_mappings,
    parse_full_name,
    parse_local_name,
    split_device_name,
)

WORDS = st.sampled_from(["a", "b", "worker"])
NUMBERS = st.integers(0, 3)
NAMES = st.builds(
    ParsedName,
    job=st.none() | WORDS,
    replica=st.none() | NUMBERS,
    task=st.none() | NUMBERS,
    type=st.none() | st.sampled_from(["CPU", "GPU", "gpu", "TPU_V4"]),
    id=st.none() | NUMBERS,
)


@given(NAMES)
def test_printing_undoes_parsing(name: ParsedName) -> None:
    """Any parsed name prints to text that parses to it."""
    assert parse_full_name(str(name)) == name


@given(NAMES, st.data())
def test_parts_may_stand_in_any_order(name: ParsedName, data: st.DataObject) -> None:
    """Shuffling the parts of a name changes nothing."""
    parts = ["/" + part for part in str(name).split("/") if part]
    assert parse_full_name("".join(data.draw(st.permutations(parts)))) == name


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ParsedName()),
        ("/", ParsedName()),
        ("/job:*/replica:*/task:*/device:*:*", ParsedName()),
        ("/job:a/replica:0/task:1/device:GPU:2", ParsedName("a", 0, 1, "GPU", 2)),
        ("/device:GPU:2/task:1/job:a/replica:0", ParsedName("a", 0, 1, "GPU", 2)),
        ("/cpu:0", ParsedName(type="CPU", id=0)),
        ("/CPU:*", ParsedName(type="CPU")),
        ("/gpu:1", ParsedName(type="GPU", id=1)),
        ("/GPU:1", ParsedName(type="GPU", id=1)),
        ("/device:gpu:1", ParsedName(type="gpu", id=1)),
        ("/device:GPU", ParsedName(type="GPU")),
        ("/device:GPU:*", ParsedName(type="GPU")),
        ("/job:a/job:b", ParsedName(job="b")),
        ("/job:a/job:*", ParsedName()),
        ("/device:GPU:1/device:CPU", ParsedName(type="CPU")),
        ("/job:foo_Bar9", ParsedName(job="foo_Bar9")),
    ],
)
def test_legal_names(text: str, expected: ParsedName) -> None:
    """Each legal spelling means what TensorFlow takes it to mean."""
    assert parse_full_name(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "foobar",
        "not a device",
        "/foo:bar",
        "/job:123/replica:0",
        "/job:",
        "/job:a/",
        "//job:a",
        "/job:a-b",
        "/replica:-1",
        "/replica:x",
        "/task:",
        "/device:gpu:",
        "/device:GPU:-1",
        "/device:GPU:3/extra",
        "/device:",
        "/cpu",
        "/cpu:",
        "/Cpu:0",
        "/tpu:0",
        "/job:a/replica:0/task:0/device:GPU:1x",
    ],
)
def test_illegal_names(text: str) -> None:
    """Anything else is refused, with the text in the message."""
    assert find_full_name(text) is None
    with pytest.raises(InvalidArgumentError, match="is no device name"):
        parse_full_name(text)


@pytest.mark.parametrize("text", ["CPU", "CPU:", ":1", "CPU:1:", "/CPU:1", "1:1", "CPU:*"])
def test_illegal_local_names(text: str) -> None:
    """A local name is a type, a colon and a number, all of it."""
    assert find_local_name(text) is None
    with pytest.raises(InvalidArgumentError):
        parse_local_name(text)


def test_local_name() -> None:
    """ "CPU:10" names a device within a task."""
    assert parse_local_name("CPU:10") == ParsedName(type="CPU", id=10)


@given(NAMES)
def test_specification_is_reflexive(a: ParsedName) -> None:
    """Every constraint specifies itself, and the empty one every other."""
    assert is_specification(a, a)
    assert is_specification(ParsedName(), a)


@given(NAMES, NAMES)
def test_specification_is_antisymmetric(a: ParsedName, b: ParsedName) -> None:
    """Two constraints that specify each other are equal."""
    assert (is_specification(a, b) and is_specification(b, a)) == (a == b)


@given(NAMES, NAMES, NAMES)
def test_specification_is_transitive(a: ParsedName, b: ParsedName, c: ParsedName) -> None:
    """Tightening twice is tightening."""
    x, y = complete(a, b), complete(complete(a, b), c)
    assert is_specification(a, x)
    assert is_specification(x, y)
    assert is_specification(a, y)


@given(NAMES, NAMES)
def test_merge_is_the_loosest_constraint_that_holds_both(a: ParsedName, b: ParsedName) -> None:
    """Compatible constraints merge to one that both specify, in either order; others do not merge."""
    if are_compatible(a, b):
        merged = merge(a, b)
        assert merged == merge(b, a) == complete(a, b)
        assert is_specification(a, merged)
        assert is_specification(b, merged)
    else:
        with pytest.raises(InvalidArgumentError, match="Cannot merge devices with incompatible"):
            merge(a, b)


@given(NAMES)
def test_merge_with_itself_changes_nothing(a: ParsedName) -> None:
    """Merging is idempotent, and anything merges with the empty constraint."""
    assert merge(a, a) == a == merge(a, ParsedName()) == merge(ParsedName(), a)


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ("/job:a", "/job:b", "incompatible jobs: '/job:a' and '/job:b'"),
        ("/replica:0", "/job:b/replica:1", "incompatible replicas: '/job:b/replica:0' and '/job:b/replica:1'"),
        ("/task:0", "/task:1", "incompatible tasks: '/task:0' and '/task:1'"),
        ("/gpu:0", "/cpu:0", "incompatible types: '/device:GPU:0' and '/device:CPU:0'"),
        ("/cpu:0", "/cpu:1", "incompatible ids: '/device:CPU:0' and '/device:CPU:1'"),
    ],
)
def test_merge_conflicts(a: str, b: str, message: str) -> None:
    """The first conflict is reported, in TensorFlow's words."""
    with pytest.raises(InvalidArgumentError) as caught:
        merge(parse_full_name(a), parse_full_name(b))
    assert caught.value.message == f"Cannot merge devices with {message}"


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("/job:a/gpu:0", "/cpu:0", "/job:a"),
        ("/gpu:0", "/job:a/cpu:1", "/job:a"),
        ("/gpu:0", "/gpu:1", "/device:GPU:*"),
        ("/gpu:0", "/gpu:*", "/device:GPU:0"),
    ],
)
def test_soft_merge_opens_type_and_id(a: str, b: str, expected: str) -> None:
    """A conflict of types opens type and id, a conflict of ids the id."""
    assert merge(parse_full_name(a), parse_full_name(b), soft=True) == parse_full_name(expected)


def test_soft_merge_still_refuses_other_tasks() -> None:
    """Only type and id are soft."""
    with pytest.raises(InvalidArgumentError, match="incompatible tasks"):
        merge(parse_full_name("/task:0"), parse_full_name("/task:1"), soft=True)


def test_complete_specification() -> None:
    """Only a full name completes a pattern."""
    pattern = parse_full_name("/job:a/gpu:*")
    assert is_complete_specification(pattern, parse_full_name("/job:a/replica:0/task:0/device:GPU:1"))
    assert not is_complete_specification(pattern, parse_full_name("/job:a/replica:0/device:GPU:1"))
    assert not is_complete_specification(pattern, parse_full_name("/job:a/replica:0/task:0/device:CPU:1"))


def test_address_space() -> None:
    """Devices of one task share an address space; a name that leaves the task open shares none."""
    a, b = parse_full_name("/job:a/replica:0/task:1/cpu:0"), parse_full_name("/job:a/replica:0/task:1/gpu:3")
    assert is_same_address_space(a, b)
    assert not is_same_address_space(a, parse_full_name("/job:a/replica:0/task:2/cpu:0"))
    assert not is_same_address_space(parse_full_name("/job:a"), parse_full_name("/job:a"))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("CPU:3", "/job:a/replica:1/task:2/device:CPU:3"),
        ("/gpu:0", "/job:a/replica:1/task:2/device:GPU:0"),
        ("/job:b", "/job:b/replica:1/task:2/device:CPU:0"),
        ("", "/job:a/replica:1/task:2/device:CPU:0"),
    ],
)
def test_canonicalize(name: str, expected: str) -> None:
    """Local, legacy and partial names become full ones."""
    assert canonicalize(name, "/job:a/replica:1/task:2/device:CPU:0") == expected


@pytest.mark.parametrize(
    ("name", "base", "message"),
    [
        ("/cpu:0", "/job:a", "Basename: /job:a should be fully specified"),
        ("/cpu:0", "x", "Could not parse basename: x into a device specification"),
        ("foo", "/job:a/replica:0/task:0/cpu:0", "Could not parse foo into a device specification"),
    ],
)
def test_canonicalize_refuses(name: str, base: str, message: str) -> None:
    """The base must be full, and both must parse."""
    with pytest.raises(InvalidArgumentError, match=message):
        canonicalize(name, base)


def test_spellings_of_one_device() -> None:
    """A full name has a modern and a legacy spelling, a local one too; a partial name has none."""
    parsed = parse_full_name("/job:a/replica:0/task:1/device:GPU:2")
    assert names_for_device_mappings(parsed) == [
        full_name("a", 0, 1, "GPU", 2),
        legacy_full_name("a", 0, 1, "GPU", 2),
    ]
    assert names_for_device_mappings(parsed)[1] == "/job:a/replica:0/task:1/gpu:2"
    assert local_names_for_device_mappings(parsed) == ["/device:GPU:2", "GPU:2"]
    assert names_for_device_mappings(parse_full_name("/job:a")) == []
    assert local_names_for_device_mappings(parse_full_name("/job:a/device:GPU")) == []


def test_split() -> None:
    """A name splits into its task, in normal order, and TYPE:ID."""
    assert split_device_name("/device:GPU:2/task:1/job:a") == ("/job:a/task:1", "GPU:2")
    with pytest.raises(InvalidArgumentError, match="no single device"):
        split_device_name("/job:a/device:GPU")
