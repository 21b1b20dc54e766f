"""Examples in JSON become the bytes that TensorFlow makes of them."""

from __future__ import annotations

import pytest

from partita.errors import InvalidArgumentError
from partita.graph.protos import Example
from tests.devices.kernels.harness import check_shapes
from tests.devices.kernels.parsing.records import vector


def test_the_order_of_the_text_is_kept() -> None:
    """Numbers have a field each. TensorFlow 2.21 gives these bytes."""
    text = (
        b'{"features":{"feature":{"a":{"int64List":{"value":[1,2,"3"]}},"b":{"floatList":{"value":[1.5,"NaN"]}},'
        b'"c":{"bytesList":{"value":["YWJj"]}}}}}'
    )
    numbers = b"\n0\n\r\n\x01a\x12\x08\x1a\x06\x08\x01\x08\x02\x08\x03"
    rest = b"\n\x11\n\x01b\x12\x0c\x12\n\r\x00\x00\xc0?\r\x00\x00\xc0\x7f\n\x0c\n\x01c\x12\x07\n\x05\n\x03abc"
    assert check_shapes("DecodeJSONExample", vector([text, b"{}"])).tolist() == [numbers + rest, b""]


def test_negative_numbers_and_empty_features() -> None:
    """protobuf reads what was written."""
    text = b'{"features": {"feature": {"x": {"int64_list": {"value": ["-1"]}}, "y": {}, "z": {"floatList": {}}}}}'
    (record,) = check_shapes("DecodeJSONExample", vector([text])).tolist()
    features = Example.FromString(record).features.feature
    assert list(features["x"].int64_list.value) == [-1]
    assert features["y"].WhichOneof("kind") is None
    assert features["z"].WhichOneof("kind") == "float_list"


@pytest.mark.parametrize("text", [b"", b"nope", b'{"x": 1}', b"[]", b"\xff"])
def test_other_texts_are_refused(text: bytes) -> None:
    """The error begins as TensorFlow's does."""
    with pytest.raises(InvalidArgumentError, match="Error while parsing JSON: "):
        check_shapes("DecodeJSONExample", vector([text]))
