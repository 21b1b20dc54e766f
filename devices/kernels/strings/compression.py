"""DecodeCompressed: the bytes that compressed strings stand for.

What a stream that ends too early held so far is the result, and bytes behind a zlib stream are ignored; behind a gzip
member another one may follow.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable

from ....errors import DataLossError, InvalidArgumentError, UnimplementedError
from ..registry import Construction, Kernel, kernel
from .each_string import each

ZLIB, GZIP = zlib.MAX_WBITS, zlib.MAX_WBITS | 16  # zlib's codes for the two headers


def inflated(data: bytes, window_bits: int) -> tuple[bytes, bytes]:
    """What one stream holds, and what comes behind it; DataLossError if it is damaged."""
    stream = zlib.decompressobj(window_bits)
    try:
        return stream.decompress(data), stream.unused_data
    except zlib.error as error:
        match = re.match(r"Error (-?\d+) .*: (.*)", str(error))
        code, reason = match.groups() if match is not None else ("-3", str(error))
        raise DataLossError(f"inflate() failed with error {code}: {reason}") from None


def _from_zlib(data: bytes) -> bytes:
    return inflated(data, ZLIB)[0]


def _from_gzip(data: bytes) -> bytes:
    members = []
    while data:
        member, data = inflated(data, GZIP)
        members.append(member)
    return b"".join(members)


DECODERS: dict[bytes, Callable[[bytes], bytes]] = {b"": bytes, b"ZLIB": _from_zlib, b"GZIP": _from_gzip}
"""what decompresses, by the name of the format"""


@kernel("DecodeCompressed")
def decode_compressed(node: Construction) -> Kernel:
    """Each string by itself."""
    name = node.attrs["compression_type"]
    if name == b"ZSTD":
        raise UnimplementedError("op DecodeCompressed with compression_type 'ZSTD': Python has no decoder of Zstandard")
    if name not in DECODERS:
        raise InvalidArgumentError("Only ZLIB, ZSTD, GZIP or NONE are supported compressions")
    decode = DECODERS[name]
    return lambda x: each(decode, x)
