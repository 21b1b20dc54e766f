"""The ops of strings.

`graph/ops/record.py` explains the columns of a row.
"""

from __future__ import annotations

from ..record import FactsByOp

OPS: FactsByOp = {
    "AsString": {"is_flat": True},
    "DecodeBase64": {"is_flat": True},
    "DecodeCSV": {},
    "DecodeCompressed": {},
    "DecodePaddedRaw": {"is_flat": True},
    "DecodeProtoV2": {"is_flat": True},
    "DecodeRaw": {"is_flat": True},
    "EncodeBase64": {"is_flat": True},
    "EncodeProto": {"is_flat": True},
    "Fingerprint": {},
    "ParseTensor": {"is_flat": True},
    "ReduceJoin": {"is_flat": True},
    "RegexFullMatch": {},
    "RegexReplace": {"is_flat": True},
    "SerializeTensor": {"is_flat": True},
    "StaticRegexFullMatch": {},
    "StaticRegexReplace": {},
    "StringFormat": {},
    "StringJoin": {"is_flat": True},
    "StringLength": {},
    "StringLower": {},
    "StringNGrams": {},
    "StringSplit": {"is_flat": True},
    "StringSplitV2": {},
    "StringStrip": {},
    "StringToHashBucket": {"is_flat": True},
    "StringToHashBucketFast": {"is_flat": True},
    "StringToHashBucketStrong": {"is_flat": True},
    "StringToNumber": {"is_flat": True},
    "StringUpper": {},
    "Substr": {},
    "UnicodeDecode": {},
    "UnicodeDecodeWithOffsets": {},
    "UnicodeEncode": {},
    "UnicodeScript": {},
    "UnicodeTranscode": {},
    "UnsortedSegmentJoin": {},
}
