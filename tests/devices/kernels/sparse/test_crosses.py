"""Crosses are the combinations that itertools finds, joined, or hashed as TensorFlow hashes them."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.devices.kernels.strings.each_string import strings
from partita.errors import InvalidArgumentError
from partita.graph.dtypes import Array, DataType
from tests.devices.kernels.harness import check_shapes, run, shapes

ROWS = st.lists(st.lists(st.binary(max_size=2), max_size=3), min_size=2, max_size=2)
STRING, INT64 = DataType.STRING, DataType.INT64


def texts(*values: bytes) -> Array:
    """A vector of strings."""
    return strings(values, (len(values),))


def sparse(rows: list[list[bytes]]) -> tuple[Array, Array, Array]:
    """Indices, values and shape."""
    indices = np.array([[i, k] for i, row in enumerate(rows) for k in range(len(row))], np.int64).reshape(-1, 2)
    return indices, texts(*(value for row in rows for value in row)), np.array([len(rows), 3])


@given(ROWS, ROWS)
def test_all_combinations_are_joined(a: list[list[bytes]], b: list[list[bytes]]) -> None:
    """The last input changes fastest."""
    inputs = [list(pair) for pair in zip(sparse(a), sparse(b), strict=True)]
    indices, values, shape = check_shapes("SparseCrossV2", *inputs, [], strings([b"-"], ()), dense_types=())
    expected = [[b"-".join(pair) for pair in product(*pairs)] for pairs in zip(a, b, strict=True)]
    assert values.tolist() == [value for row in expected for value in row]
    assert indices.tolist() == [[i, k] for i, row in enumerate(expected) for k in range(len(row))]
    assert shape.tolist() == [2, max(map(len, expected))]


INDICES, LETTERS, SHAPE = np.array([[0, 0], [0, 1], [1, 0]]), texts(b"a", b"b", b"c"), np.array([2, 2])
DENSE = strings([b"x", b"y", b"z", b"w"], (2, 2))
CROSS: dict[str, Any] = {
    "num_buckets": 0,
    "hash_key": 0,
    "out_type": INT64,
    "internal_type": INT64,
    "hashed_output": True,
}


def test_hashes_of_tensorflow() -> None:
    """TensorFlow 2.21 gives these."""
    one = [INDICES], [LETTERS], [SHAPE]
    found = check_shapes("SparseCross", *one, [], dense_types=(), **CROSS)
    assert found[1].tolist() == [6392349563203753680, 3129007280313473183, 1871694282635746707]
    found = check_shapes("SparseCross", *one, [DENSE], **CROSS | {"hash_key": 956888297470})
    assert found[1].tolist()[:3] == [1484974617627318892, 3920818148696658747, 3552177129620670004]
    numbers = [INDICES], [np.array([1, 2, 3])], [SHAPE]
    found = check_shapes("SparseCross", *numbers, [np.array([[7], [8]])], **CROSS | {"hash_key": 5})
    assert found[1].tolist() == [8743132183530305406, 2175201346568714877, 2819747080994321726]


def test_keyed_hashes_of_tensorflow() -> None:
    """Only strong ones use the key. TensorFlow 2.21 gives these."""
    salt = np.array([137, 173])
    expected = {False: [3694432073954588132, 2572224033622389015], True: [8128005079731125233, 5524000490119507203]}
    for strong, hashes in expected.items():
        inputs: Any = [INDICES], [LETTERS], [SHAPE], [], np.int64(0), np.bool_(strong), salt
        assert check_shapes("SparseCrossHashed", *inputs, dense_types=())[1].tolist()[:2] == hashes
    numbers: Any = [INDICES], [np.array([1, 2, 3])], [SHAPE], [], np.int64(0), np.bool_(False), salt
    assert check_shapes("SparseCrossHashed", *numbers, dense_types=())[1].tolist()[0] == 7601041269982238804


def cross_ragged(order: str, splits: Array, dense: Array = DENSE, **attrs: Any) -> Any:
    """Values and splits of a ragged, a sparse and a dense input."""
    values = strings([b"a", b"b", b"c"], (3,))
    attrs = {"num_buckets": 0, "hash_key": 0, "hashed_output": False, "out_values_type": STRING, **attrs}
    inputs = [values], [splits], [INDICES], [np.array([1, 2, 3])], [SHAPE], [dense]
    return check_shapes("RaggedCross", *inputs, input_order=order, out_row_splits_type=INT64, **attrs)


def test_ragged_crosses() -> None:
    """In the order that the attr says. TensorFlow 2.21 gives these."""
    values, splits = cross_ragged("DSR", np.array([0, 2, 3]))
    assert values.tolist()[:3] == [b"x_X_1_X_a", b"x_X_1_X_b", b"x_X_2_X_a"]
    assert values.tolist()[-2:] == [b"z_X_3_X_c", b"w_X_3_X_c"]
    assert splits.tolist() == [0, 8, 10]
    hashed: dict[str, Any] = {"hashed_output": True, "out_values_type": INT64, "hash_key": 956888297470}
    assert cross_ragged("RSD", np.array([0, 2, 3]), **hashed)[0].tolist()[:2] == [
        43144969564918260,
        5928838386147229058,
    ]


@pytest.mark.parametrize(
    ("order", "splits", "dense", "message"),
    [
        ("RS", [0, 2, 3], DENSE, "Invalid length for input_order"),
        ("RSX", [0, 2, 3], DENSE, "Unexpected input_order value"),
        ("RSD", [1, 2, 3], DENSE, "first element of ragged splits  must be 0 but is 1"),
        ("RSD", [0, 2, 4], DENSE, r"must be the number of ragged values\(3\) but is 4"),
        ("RSD", [0, 3, 1, 3], DENSE, r"ragged_splits\[2\]=1 is smaller than row_splits\[1\]=3"),
        ("RSD", [0, 2, 3], DENSE[:1], "inputs must all have the same batch dimension size"),
    ],
)
def test_wrong_ragged_inputs_are_refused(order: str, splits: list[int], dense: Array, message: str) -> None:
    """In TensorFlow's words."""
    with pytest.raises(InvalidArgumentError, match=message):
        cross_ragged(order, np.array(splits), dense)


@pytest.mark.parametrize(
    ("parts", "dense", "message"),
    [
        (
            (INDICES[:, 0], LETTERS, SHAPE),
            [],
            r"Input indices should be a matrix but received shape \[3\]",
        ),
        ((INDICES, LETTERS[None], SHAPE), [], r"Input values should be a vector but received shape \[1,3\]"),
        ((INDICES, LETTERS[:2], SHAPE), [], "Expected size of values to be 3 got 2 at position 0"),
        ((INDICES, LETTERS, SHAPE[:1]), [], "shape should imply a 2D tensor"),
        ((INDICES, LETTERS, SHAPE), [DENSE[:1]], "Expected batch size 2 got 1 at dense tensor 0"),
        ((INDICES, LETTERS, SHAPE), [DENSE[0]], r"Dense inputs should be a matrix but received shape \[2\]"),
    ],
)
def test_wrong_inputs_are_refused(parts: tuple[Array, ...], dense: list[Array], message: str) -> None:
    """In TensorFlow's words."""
    inputs = [[part] for part in parts]
    with pytest.raises(InvalidArgumentError, match=message):
        run("SparseCrossV2", *inputs, dense, strings([b""], ()), dense_types=(STRING,) * len(dense))


def test_shapes_before_the_run() -> None:
    """Rows of the result are those of the inputs."""
    attrs = {"input_order": "D", "num_buckets": 0, "hash_key": 0, "hashed_output": False, "out_values_type": STRING}
    attrs |= {"ragged_values_types": (), "ragged_splits_types": (), "sparse_values_types": (), "dense_types": (INT64,)}
    found = shapes("RaggedCross", [], [], [], [], [], [(3, 2)], out_row_splits_type=INT64, Nsparse=0, **attrs)
    assert found == [(None,), (4,)]
