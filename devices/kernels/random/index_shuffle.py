"""Where single indices go in a pseudo-random permutation, without the other indices (RandomIndexShuffle).

The permutation is the block cipher Simon (Beaulieu et al., 2013) with a block just large enough for the largest index;
what lies beyond the largest index is encrypted again. Few rounds are enough for a shuffle.
"""

from __future__ import annotations

import math

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, numpy_dtype
from ..checks import require
from ..registry import Construction, Kernel, kernel

_KEYS = 3
_FEW = 16  # indices that are faster walked one by one
_SMALLEST_BLOCK = 16  # bits; TensorFlow has seen patterns in smaller ones
# Constants of the cipher's key schedule, cut to the size of a word.
_CONSTANT, _SEQUENCE = 0xFFFFFFFC, 0x7369F885192C0EF5


class _Cipher:
    """Encrypts blocks of two words of `bits` bits, each with keys of its own: uint64 [blocks]."""

    def __init__(self, bits: int, keys: Array, rounds: int) -> None:
        """`keys` is uint64 [3, blocks]."""
        self._bits, self._mask = np.uint64(bits), np.uint64((1 << bits) - 1)
        self._round_keys = [key & self._mask for key in keys]
        sequence = _SEQUENCE & int(self._mask)
        for i in range(_KEYS, rounds):
            last = self._round_keys[-1]
            fixed = np.uint64((_CONSTANT ^ (sequence >> (i - _KEYS) & 1)) & int(self._mask))
            turned = self._turned(last, bits - 3) ^ self._turned(last, bits - 4)
            self._round_keys.append(fixed ^ self._round_keys[i - _KEYS] ^ turned)

    def _turned(self, words: Array, by: int) -> Array:
        """Words rotated to the left."""
        return (words << np.uint64(by) | words >> (self._bits - np.uint64(by))) & self._mask

    def _mixed(self, words: Array) -> Array:
        return self._turned(words, 1) & self._turned(words, 8) ^ self._turned(words, 2)

    def encrypt(self, blocks: Array, which: Array) -> Array:
        """The blocks, encrypted with the keys of the blocks numbered `which`."""
        left, right = blocks >> self._bits & self._mask, blocks & self._mask
        for key in self._round_keys:
            left, right = right, left ^ self._mixed(right) ^ key[which]
        return left << self._bits | right

    def walk(self, block: int, which: int, largest: int) -> int:
        """A block encrypted again and again until it is at most `largest`: long walks are slow in arrays of one."""
        bits, mask = int(self._bits), int(self._mask)
        keys = [int(key[which]) for key in self._round_keys]
        while True:
            left, right = block >> bits & mask, block & mask
            for key in keys:
                one, two, eight = right >> bits - 1, right >> bits - 2, right >> bits - 8
                mixed = (right << 1 | one) & (right << 8 | eight) ^ (right << 2 | two)
                left, right = right, (left ^ mixed ^ key) & mask
            block = left << bits | right
            if block <= largest:
                return block


def shuffled(indices: Array, keys: Array, largest: int, rounds: int) -> Array:
    """New places of `indices` (uint64 [n]) among 0 ... `largest`, under `keys` (uint64 [3, n])."""
    bits = max(math.ceil(math.log2(largest)), _SMALLEST_BLOCK) if largest else _SMALLEST_BLOCK
    cipher = _Cipher((bits + 1) // 2, keys, rounds)
    places, pending = indices.copy(), np.arange(len(indices))
    while pending.size > _FEW:
        places[pending] = cipher.encrypt(places[pending], pending)
        pending = pending[places[pending] > np.uint64(largest)]
    for which in pending.tolist():
        places[which] = cipher.walk(int(places[which]), which, largest)
    return places


def _rows(index: Array, seed: Array, limit: Array) -> int | None:
    """The number of rows, None for a scalar; InvalidArgumentError for shapes that do not go together."""
    if not (seed.ndim in (1, 2) and seed.shape[-1] == _KEYS):
        raise InvalidArgumentError(
            f"Seed must be a vector of size [3] or a matrix of size [1, 3] but got {shape_text(seed.shape)}."
        )
    lengths = {shape[0] for shape in (index.shape, limit.shape, seed.shape[:-1]) if shape}
    is_right = index.ndim <= 1 and limit.ndim <= 1 and len(lengths) <= 1 and 0 not in lengths
    require(is_right, "Index bust be a scalar or vector.")
    return lengths.pop() if lengths else None


@kernel("RandomIndexShuffle")
def random_index_shuffle(node: Construction) -> Kernel:
    """The new place of each index up to its largest one; the same for the same seed."""
    dtype, rounds = numpy_dtype(node.output_types[0]), int(node.attrs["rounds"])
    require(rounds >= 4 and rounds % 2 == 0, f"rounds must be even and at least 4, got {rounds}")

    def shuffle(index: Array, seed: Array, limit: Array) -> Array:
        rows = _rows(np.asarray(index), seed, np.asarray(limit))
        for name, values in (("index", index), ("max_index", limit)):
            if not np.all(values >= 0):
                raise InvalidArgumentError(f"{name} must be >= 0 but was {np.min(values)}")
        if not np.all(index <= limit):
            raise InvalidArgumentError(f"max_index must be >= index, but {np.min(limit)} < {np.max(index)}")
        indices, limits = (np.broadcast_to(values, rows or 1).astype(np.uint64) for values in (index, limit))
        keys = np.broadcast_to(seed, (rows or 1, _KEYS)).T.astype(np.uint64) & np.uint64(0xFFFFFFFF)
        places = np.empty_like(indices)
        for largest in np.unique(limits).tolist():
            chosen = np.flatnonzero(limits == largest)
            places[chosen] = shuffled(indices[chosen], keys[:, chosen], largest, rounds)
        return np.asarray(places.astype(dtype).reshape(() if rows is None else (rows,)))

    return shuffle
