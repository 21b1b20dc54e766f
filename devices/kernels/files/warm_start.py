"""Kernels that start a model from the checkpoint of one whose vocabularies have other entries or another order.

new vocabulary a b c, old one c a        GenerateVocabRemapping -> [1, -1, 0], 2 of them in the old one
old rows [0, 1], [2, 3]                  LoadAndRemapMatrix of these rows, with [9, 9] for what is new
                                         -> [[2, 3], [9, 9], [0, 1]]
"""

from __future__ import annotations

import os

import numpy as np

from ....errors import FailedPreconditionError, InvalidArgumentError, UnimplementedError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, DataType, dtype_name
from ....graph.formats.bundle_reader import BundleReader
from ....graph.formats.slice_keys import decode_name
from ....graph.ops.files.tensor_slices import TensorSlice
from ..checks import require, text_of
from ..registry import Construction, Kernel, kernel
from ..tables.vocabulary import Vocabulary


@kernel("GenerateVocabRemapping")
def generate_vocab_remapping(node: Construction) -> Kernel:
    """The old line of each of some entries of a new vocabulary, -1 if it has none; and how many have one."""
    first, count, old_size = (int(node.attrs[name]) for name in ("new_vocab_offset", "num_new_vocab", "old_vocab_size"))

    def remapping(new_file: Array, old_file: Array) -> tuple[Array, Array]:
        for what, name in (("new", new_file), ("old", old_file)):
            require(bool(text_of(name, "vocab_file")), f"{what} vocab filename cannot be empty.")
        new = _entries(new_file, None)
        old = _line_of(_entries(old_file, old_size if old_size >= 0 else None))
        require(first + count <= len(new), "lookup table size must be larger than last new vocab entry's line")
        lines = np.array([old.get(entry, -1) for entry in new[first : first + count]], np.int64)
        return lines, np.array(np.count_nonzero(lines >= 0), np.int32)

    return remapping


def _line_of(entries: list[bytes]) -> dict[bytes, int]:
    lines: dict[bytes, int] = {}
    for line, entry in enumerate(entries):
        first = lines.setdefault(entry, line)
        if first != line:
            raise FailedPreconditionError(
                "HashTable has different value for same key. "
                f"Key {entry.decode(errors='replace')} has {first} and trying to add value {line}"
            )
    return lines


def _entries(file: Array, size: int | None) -> list[bytes]:
    """The lines of a vocabulary; raises as `Vocabulary.read`."""
    lines, _ = Vocabulary(-2, -1, size, b"\t", 0).read(
        os.fsdecode(text_of(file, "vocab_file")), DataType.STRING, DataType.INT64
    )
    entries: list[bytes] = lines.tolist()
    return entries


@kernel("LoadAndRemapMatrix")
def load_and_remap_matrix(node: Construction) -> Kernel:
    """Rows and columns of a matrix in a checkpoint, in a new order; given values where there is no old one."""
    rows, columns = int(node.attrs["num_rows"]), int(node.attrs["num_cols"])

    def load(prefix: Array, name: Array, row_of: Array, column_of: Array, values: Array) -> Array:
        _check_remapping("row", row_of)
        require(
            row_of.size == rows, f"Size of row_remapping is {row_of.size} instead of being equal to num_rows={rows}"
        )
        if column_of.size:
            _check_remapping("col", column_of)
            size = f"its size is {column_of.size} instead of being equal to num_cols={columns}"
            require(column_of.size == columns, f"Provided col_remapping, but {size}")
        with BundleReader(os.fsdecode(prefix.item())) as reader:
            old = _old_rows(reader, decode_name(name.item()), row_of, None if column_of.size else columns)
        chosen = column_of if column_of.size else np.arange(columns)
        require(bool((chosen < old.shape[1]).all()), f"col_remapping has a column that is not among {old.shape[1]}")
        is_old = (row_of >= 0)[:, None] & (chosen >= 0)
        result = np.empty((rows, columns), np.float32)
        result[is_old] = old[:, chosen][is_old]
        _fill(result, ~is_old, values)
        return result

    return load


def _check_remapping(what: str, remapping: Array) -> None:
    """InvalidArgumentError for a wrong rank, UnimplementedError if an old number has two new ones."""
    shape = shape_text(remapping.shape)
    require(remapping.ndim == 1, f"The `{what}_remapping` tensor must be 1-D, got a tensor of shape {shape}")
    new_of: dict[int, int] = {}
    for new, old in enumerate(remapping.tolist()):
        if old >= 0 and new_of.setdefault(old, new) != new:
            raise UnimplementedError(
                f"Old ID {old} is mapped to both new ID {new_of[old]} and {new}, which is not supported."
            )


def _old_rows(reader: BundleReader, name: str, row_of: Array, columns: int | None) -> Array:
    """Row `row_of[i]` of a matrix at i, anything where that is negative; it must have so many columns, if given."""
    stored, shape = reader.dtype(name), reader.shape(name)
    types = f"invalid type {dtype_name(stored)} instead of expected type float"
    require(stored is DataType.FLOAT, f"Tensor {name} has {types}")
    rank = f"of invalid rank {len(shape)} instead of expected shape of rank 2."
    require(len(shape) == 2, f"Tensor {name} has shape {shape_text(shape)} {rank}")
    if columns not in (None, shape[1]):
        raise InvalidArgumentError(
            f"Tensor {name} has shape {shape_text(shape)}, where the size of its 2nd dimension is {shape[1]} instead "
            f"of being equal to num_cols={columns}"
        )
    used = row_of[row_of >= 0]
    if not used.size:
        return np.empty((row_of.size, shape[1]), np.float32)
    first, last = int(used.min()), int(used.max())
    # Only the rows between are read, so a part of a large matrix needs little memory.
    between = reader.read_slice(name, TensorSlice(((first, last - first + 1), None)))
    rows: Array = between[np.maximum(row_of - first, 0)]
    return rows


def _fill(result: Array, is_new: Array, values: Array) -> None:
    """Puts the values where there is no old one, row by row; InvalidArgumentError unless all are used."""
    missing, flat = int(np.count_nonzero(is_new)), values.reshape(-1)
    contained = f"initializing_values contained {flat.size} elements, but"
    require(flat.size >= missing, f"{contained} more missing values remain.")
    require(flat.size == missing, f"{contained} only {missing} elements were used to fill in missing values.")
    result[is_new] = flat
