"""DecodeJSONExample: Examples in protobuf's JSON form become serialised ones."""

from __future__ import annotations

from ....graph.dtypes import Array
from ....graph.ops.parsing.json_examples import example_from_json
from ..registry import simple
from ..strings.each_string import each


def decode_json_example(records: Array) -> Array:
    """Each string by itself."""
    return each(example_from_json, records)


simple("DecodeJSONExample", decode_json_example)
