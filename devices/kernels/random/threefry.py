"""Threefry2x32-20, a counter-based generator of random bits (Salmon et al., Parallel Random Numbers, 2011).

Block n of two 32-bit words is a pure function of the 64-bit key and of the 64-bit counter + n. Twenty rounds add,
rotate and mix the two words; after each four of them a word of the key is added.
"""

from __future__ import annotations

import numpy as np

from ....graph.dtypes import Array

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA
"""the constant of the paper with which the third word of the key is made from the other two"""
_GROUPS = 5  # of four rounds each
_MASK_32 = (1 << 32) - 1


def blocks(key: int, counters: Array) -> tuple[Array, Array]:
    """The first and second words (uint32) of the blocks at `counters` (uint64)."""
    words = [key & _MASK_32, key >> 32]
    words.append(words[0] ^ words[1] ^ _PARITY)
    schedule = [np.uint32(word) for word in words]
    first = counters.astype(np.uint32) + schedule[0]
    second = (counters >> np.uint64(32)).astype(np.uint32) + schedule[1]
    for group in range(_GROUPS):
        for rotation in _ROTATIONS[group % 2]:
            first = first + second
            second = (second << np.uint32(rotation) | second >> np.uint32(32 - rotation)) ^ first
        first = first + schedule[(group + 1) % 3]
        second = second + schedule[(group + 2) % 3] + np.uint32(group + 1)
    return first, second
