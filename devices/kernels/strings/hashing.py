"""Kernels that hash strings into buckets or fingerprints, with the published hash functions that the ops name.

Sources: FarmHash (farm_hash.py), MurmurHash64A (Appleby, 2010), SipHash-2-4 (Aumasson and Bernstein, 2012).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ..registry import Construction, Kernel, kernel
from .each_string import decoded, measured
from .farm_hash import farm_fingerprint, farm_fingerprints, mixed, word_at

_MASK = (1 << 64) - 1


def murmur_64(data: bytes) -> int:
    """MurmurHash64A of `data` with the seed that StringToHashBucket uses."""
    mul, seed = 0xC6A4A7935BD1E995, 0xDECAFCAFFE
    value = (seed ^ (len(data) * mul)) & _MASK
    whole = len(data) & ~7
    for at in range(0, whole, 8):
        k = mixed(word_at(data, at) * mul) * mul & _MASK
        value = (value ^ k) * mul & _MASK
    if whole < len(data):
        value = (value ^ int.from_bytes(data[whole:], "little")) * mul & _MASK
    return int(mixed(mixed(value) * mul))


def sip_hash(data: bytes, key: tuple[int, int]) -> int:
    """SipHash-2-4 of `data` under a key of two 64-bit numbers."""
    k0, k1 = (k & _MASK for k in key)
    a, b = k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D
    c, d = k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573
    whole = len(data) & ~7
    words = [word_at(data, at) for at in range(0, whole, 8)]
    words.append(int.from_bytes(data[whole:], "little") | (len(data) & 0xFF) << 56)
    for word, final, rounds in (*((word, 0, 2) for word in words), (0, 0xFF, 4)):
        c ^= final
        d ^= word
        for _ in range(rounds):  # rotations are written out: as calls they would take twice as long
            a, c = (a + b) & _MASK, (c + d) & _MASK
            b = (b >> 51 | b << 13 & _MASK) ^ a
            d = (d >> 48 | d << 16 & _MASK) ^ c
            a = a >> 32 | a << 32 & _MASK
            c, a = (c + b) & _MASK, (a + d) & _MASK
            b = (b >> 47 | b << 17 & _MASK) ^ c
            d = (d >> 43 | d << 21 & _MASK) ^ a
            c = c >> 32 | c << 32 & _MASK
        a ^= word
    return a ^ b ^ c ^ d


def _buckets(node: Construction, hashed: Callable[[bytes], int]) -> Kernel:
    count = node.attrs["num_buckets"]
    dtype = np.dtype(np.int64)
    return lambda x: measured(lambda value: hashed(value) % count, x, dtype)


@kernel("StringToHashBucketFast")
def string_to_hash_bucket_fast(node: Construction) -> Kernel:
    """FarmHash fingerprint modulo the number of buckets."""
    count = np.uint64(node.attrs["num_buckets"])
    return lambda x: (farm_fingerprints(x.reshape(-1).tolist()) % count).astype(np.int64).reshape(x.shape)


@kernel("StringToHashBucket")
def string_to_hash_bucket(node: Construction) -> Kernel:
    """MurmurHash64A modulo the number of buckets."""
    return _buckets(node, murmur_64)


@kernel("StringToHashBucketStrong")
def string_to_hash_bucket_strong(node: Construction) -> Kernel:
    """SipHash-2-4 under the node's key modulo the number of buckets."""
    key = node.attrs["key"]
    if len(key) != 2:
        raise InvalidArgumentError("Key must have 2 elements")
    return _buckets(node, lambda value: sip_hash(value, key))


def _row_bytes(row: Array) -> bytes:
    """The bytes of a row that are hashed: the only string itself, the fingerprints of several, or the raw elements."""
    if row.dtype.kind != "O":
        return np.ascontiguousarray(row).tobytes()
    values: list[bytes] = row.tolist()
    if len(values) == 1:
        return values[0]
    return b"".join(farm_fingerprint(value).to_bytes(8, "little") for value in values)


@kernel("Fingerprint")
def fingerprint(node: Construction) -> Kernel:
    """A fingerprint of eight bytes for each entry of the first axis."""

    def run(x: Array, method: Array) -> Array:
        if method.ndim != 0:
            raise InvalidArgumentError(f"`method` should be a scalar string: {shape_text(method.shape)}")
        if method.item() != b"farmhash64":
            raise InvalidArgumentError(f"Unsupported fingerprint method: {decoded(method.item())}")
        if x.ndim == 0:
            raise InvalidArgumentError(f"`data` should have at least one dimension: {shape_text(x.shape)}")
        rows = [farm_fingerprint(_row_bytes(row)) for row in x.reshape(x.shape[0], x.size // max(x.shape[0], 1))]
        return np.array(rows, "<u8").view(np.uint8).reshape(len(rows), 8)

    return run
