"""Kernels that hash strings into buckets or fingerprints, with the published hash functions that the ops name.

Sources: FarmHash (Pike, Google, 2014; its 64-bit fingerprint), MurmurHash64A (Appleby, 2010), SipHash-2-4 (Aumasson and
Bernstein, 2012).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ..registry import Construction, Kernel, kernel
from .each_string import decoded, measured

_MASK = (1 << 64) - 1
_K0, _K1, _K2 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F


def _word(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 8], "little")


def _rotated(value: int, right: int) -> int:
    value &= _MASK
    return ((value >> right) | (value << (64 - right))) & _MASK


def _mixed(value: int) -> int:
    return (value & _MASK) ^ ((value & _MASK) >> 47)


def _hash_pair(u: int, v: int, mul: int) -> int:
    a = _mixed(((u ^ v) & _MASK) * mul)
    b = _mixed(((v & _MASK) ^ a) * mul)
    return (b * mul) & _MASK


def _farm_16(data: bytes) -> int:
    size = len(data)
    mul = _K2 + 2 * size
    if size >= 8:
        a, b = _word(data, 0) + _K2, _word(data, size - 8)
        return _hash_pair(_rotated(b, 37) * mul + a, (_rotated(a, 25) + b) * mul, mul)
    if size >= 4:
        first, last = int.from_bytes(data[:4], "little"), int.from_bytes(data[-4:], "little")
        return _hash_pair(size + (first << 3), last, mul)
    if size:
        y, z = data[0] + (data[size >> 1] << 8), size + (data[-1] << 2)
        return (_mixed((y * _K2) ^ (z * _K0)) * _K2) & _MASK
    return _K2


def _farm_64(data: bytes) -> int:
    """Fingerprint of 17 to 64 bytes."""
    size = len(data)
    mul = _K2 + 2 * size
    a, b = _word(data, 0) * (_K1 if size <= 32 else _K2) & _MASK, _word(data, 8)
    c, d = _word(data, size - 8) * mul & _MASK, _word(data, size - 16) * _K2
    y = _rotated(a + b, 43) + _rotated(c, 30) + d
    z = _hash_pair(y, a + _rotated(b + _K2, 18) + c, mul)
    if size <= 32:
        return z
    e, f = _word(data, 16) * mul & _MASK, _word(data, 24)
    g, h = (y + _word(data, size - 32)) * mul & _MASK, (z + _word(data, size - 24)) * mul
    return _hash_pair(_rotated(e + f, 43) + _rotated(g, 30) + h, e + _rotated(f + a, 18) + g, mul)


def _weak(data: bytes, at: int, a: int, b: int) -> tuple[int, int]:
    w, x, y, z = (_word(data, at + 8 * i) for i in range(4))
    a += w
    b = _rotated(b + a + z, 21)
    c = a
    a += x + y
    return (a + z) & _MASK, (b + _rotated(a, 44) + c) & _MASK


def farm_fingerprint(data: bytes) -> int:
    """FarmHash's 64-bit fingerprint of `data`."""
    size = len(data)
    if size <= 16:
        return _farm_16(data)
    if size <= 64:
        return _farm_64(data)
    x, y = 81, (81 * _K1 + 113) & _MASK
    z = _mixed(y * _K2 + 113) * _K2 & _MASK
    v, w = (0, 0), (0, 0)
    x = (x * _K2 + _word(data, 0)) & _MASK
    end = (size - 1) // 64 * 64
    for at in [*range(0, end, 64), size - 64]:
        final = at == size - 64 and at + 64 > end
        mul, many = (_K1 + ((z & 0xFF) << 1), 9) if final else (_K1, 1)
        if final:
            w = (w[0] + ((size - 1) & 63), w[1])
            v = (v[0] + w[0], v[1])
            w = (w[0] + v[0], w[1])
        x = _rotated(x + y + v[0] + _word(data, at + 8), 37) * mul
        y = _rotated(y + v[1] + _word(data, at + 48), 42) * mul
        x = (x ^ (w[1] * many)) & _MASK
        y = (y + v[0] * many + _word(data, at + 40)) & _MASK
        z = _rotated(z + w[0], 33) * mul & _MASK
        v = _weak(data, at, v[1] * mul, x + w[0])
        w = _weak(data, at + 32, z + w[1], y + _word(data, at + 16))
        z, x = x, z
    return _hash_pair(_hash_pair(v[0], w[0], mul) + _mixed(y) * _K0 + z, _hash_pair(v[1], w[1], mul) + x, mul)


def murmur_64(data: bytes) -> int:
    """MurmurHash64A of `data` with the seed that StringToHashBucket uses."""
    mul, seed = 0xC6A4A7935BD1E995, 0xDECAFCAFFE
    value = (seed ^ (len(data) * mul)) & _MASK
    whole = len(data) & ~7
    for at in range(0, whole, 8):
        k = _mixed(_word(data, at) * mul) * mul & _MASK
        value = (value ^ k) * mul & _MASK
    if whole < len(data):
        value = (value ^ int.from_bytes(data[whole:], "little")) * mul & _MASK
    return _mixed(_mixed(value) * mul)


def _sip_round(v: list[int]) -> None:
    v[0] = (v[0] + v[1]) & _MASK
    v[2] = (v[2] + v[3]) & _MASK
    v[1] = _rotated(v[1], 51) ^ v[0]
    v[3] = _rotated(v[3], 48) ^ v[2]
    v[0] = _rotated(v[0], 32)
    v[2] = (v[2] + v[1]) & _MASK
    v[0] = (v[0] + v[3]) & _MASK
    v[1] = _rotated(v[1], 47) ^ v[2]
    v[3] = _rotated(v[3], 43) ^ v[0]
    v[2] = _rotated(v[2], 32)


def sip_hash(data: bytes, key: tuple[int, int]) -> int:
    """SipHash-2-4 of `data` under a key of two 64-bit numbers."""
    k0, k1 = (k & _MASK for k in key)
    v = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]
    whole = len(data) & ~7
    words = [_word(data, at) for at in range(0, whole, 8)]
    words.append(int.from_bytes(data[whole:], "little") | (len(data) & 0xFF) << 56)
    for word in words:
        v[3] ^= word
        _sip_round(v)
        _sip_round(v)
        v[0] ^= word
    v[2] ^= 0xFF
    for _ in range(4):
        _sip_round(v)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def _buckets(node: Construction, hashed: Callable[[bytes], int]) -> Kernel:
    count = node.attrs["num_buckets"]
    dtype = np.dtype(np.int64)
    return lambda x: measured(lambda value: hashed(value) % count, x, dtype)


@kernel("StringToHashBucketFast")
def string_to_hash_bucket_fast(node: Construction) -> Kernel:
    """FarmHash fingerprint modulo the number of buckets."""
    return _buckets(node, farm_fingerprint)


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
        if method.ndim or method.item() != b"farmhash64":
            raise InvalidArgumentError(f"Unsupported fingerprint method: {decoded(method.reshape(-1)[0])}")
        if x.ndim == 0:
            raise InvalidArgumentError(f"`data` should have at least one dimension: {shape_text(x.shape)}")
        rows = [farm_fingerprint(_row_bytes(row)) for row in x.reshape(x.shape[0], x.size // max(x.shape[0], 1))]
        return np.array(rows, "<u8").view(np.uint8).reshape(len(rows), 8)

    return run
