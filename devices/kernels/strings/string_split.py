"""Kernels that split strings into tokens, as a sparse tensor: [row, position] of each token, the tokens, the shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ..arrays.indices import rows_and_steps
from ..registry import Construction, Kernel, kernel
from .each_string import strings


def _sparse(rows: Sequence[Sequence[bytes]]) -> tuple[Array, Array, Array]:
    lengths = [*map(len, rows)]
    tokens = [*chain.from_iterable(rows)]
    indices = np.empty((len(tokens), 2), np.int64)
    indices[:, 0], indices[:, 1] = rows_and_steps(np.array(lengths, np.int64))
    shape = np.array([len(rows), max(lengths, default=0)], np.int64)
    return indices, strings(tokens, (len(tokens),)), shape


def _check(x: Array, delimiter: Array, name: str) -> bytes:
    if x.ndim != 1:
        raise InvalidArgumentError(f"input must be a vector, got shape: {shape_text(x.shape)}")
    if delimiter.ndim:
        raise InvalidArgumentError(f"{name} must be a scalar, got shape: {shape_text(delimiter.shape)}")
    value: bytes = delimiter.item()
    return value


def _at_any(value: bytes, delimiters: bytes) -> list[bytes]:
    """The pieces between any of the delimiting bytes; single bytes if there is no delimiter."""
    if not delimiters:
        return [value[i : i + 1] for i in range(len(value))]
    table = bytes.maketrans(delimiters, delimiters[:1] * len(delimiters))
    return value.translate(table).split(delimiters[:1]) if len(delimiters) > 1 else value.split(delimiters)


@kernel("StringSplit")
def string_split(node: Construction) -> Kernel:
    """Tokens between any byte of the delimiter; an empty string has none."""
    skip_empty = node.attrs["skip_empty"]

    def run(x: Array, delimiter: Array) -> tuple[Array, Array, Array]:
        at = _check(x, delimiter, "delimiter")
        rows = [_at_any(value, at) if value else [] for value in x.tolist()]
        return _sparse([[token for token in row if token] for row in rows] if skip_empty else rows)

    return run


def _words(most: int) -> Callable[[bytes], list[bytes]]:
    """Splits at white space, at most `most` times (-1: everywhere), as Python does.

    But where as many words are found and nothing is left, that nothing is one more token, as in TensorFlow.
    """

    def split(value: bytes) -> list[bytes]:
        words = value.split(None, most)
        return [*words, b""] if len(words) == most else words

    return split


@kernel("StringSplitV2")
def string_split_v2(node: Construction) -> Kernel:
    """Tokens between the separator, or between white space if it is empty, as Python's `split`."""
    most = node.attrs["maxsplit"]
    words = _words(most)

    def run(x: Array, separator: Array) -> tuple[Array, Array, Array]:
        at = _check(x, separator, "sep")
        if most == 0:
            return _sparse([[value] for value in x.tolist()])
        return _sparse([value.split(at, most) if at else words(value) for value in x.tolist()])

    return run
