"""Port types from attrs: counts, lists, references, and errors for missing attrs."""

from __future__ import annotations

import pytest

from partita.errors import InvalidArgumentError, NotFoundError
from partita.graph.dtypes import DataType
from partita.graph.ops.registry import lookup_op
from partita.graph.ops.type_inference import input_output_types, name_ranges
from partita.graph.protos import AttrValue

F, I32, S = DataType.FLOAT, DataType.INT32, DataType.STRING


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "outputs"),
    [
        ("NoOp", {}, (), ()),
        ("Neg", {"T": F}, (F,), (F,)),
        ("AddN", {"T": F, "N": 3}, (F, F, F), (F,)),
        ("AddN", {"T": F, "N": 0}, (), (F,)),
        ("Merge", {"T": F, "N": 2}, (F, F), (F, I32)),
        ("IdentityN", {"T": (F, S)}, (F, S), (F, S)),
        ("IdentityN", {"T": ()}, (), ()),
        ("Assign", {"T": F}, (DataType.FLOAT_REF, F), (DataType.FLOAT_REF,)),
        ("VariableV2", {"dtype": I32}, (), (DataType.INT32_REF,)),
        ("Split", {"T": F, "num_split": 2}, (I32, F), (F, F)),
        ("Neg", {"T": 1}, (DataType.INVALID,), (DataType.INVALID,)),
        ("Assign", {"T": b"x"}, (DataType.INVALID, DataType.INVALID), (DataType.INVALID,)),
        ("IdentityN", {"T": F}, (), ()),
    ],
)
def test_types(op: str, attrs: dict[str, object], inputs: tuple[DataType, ...], outputs: tuple[DataType, ...]) -> None:
    """Attrs determine the ports; a type attr with another value gives invalid types, as in TensorFlow."""
    assert input_output_types(lookup_op(op), attrs) == (inputs, outputs)


def test_messages_are_read_too() -> None:
    """Attrs may be AttrValue messages; a number that is no DataType gives an invalid type."""
    assert input_output_types(lookup_op("Neg"), {"T": AttrValue.FromString(b"\x30\x01")}) == ((F,), (F,))
    assert input_output_types(lookup_op("Neg"), {"T": AttrValue.FromString(b"\x30\x4d")})[0] == (DataType.INVALID,)


@pytest.mark.parametrize(("op", "attrs", "name"), [("Neg", {}, "T"), ("AddN", {"T": F}, "N"), ("IdentityN", {}, "T")])
def test_missing_attr(op: str, attrs: dict[str, object], name: str) -> None:
    """A missing attr that determines a type or a count raises NotFoundError."""
    with pytest.raises(NotFoundError, match=f"No attr named '{name}' in NodeDef:"):
        input_output_types(lookup_op(op), attrs)


@pytest.mark.parametrize(
    ("count", "message"),
    [(-1, "-1 < 0"), (1 << 40, "Number of outputs is too big"), (1 << 30, "> 1048576"), (F, "when 'int' expected")],
)
def test_bad_counts(count: object, message: str) -> None:
    """A count must be an int between 0 and the maximal number of ports."""
    with pytest.raises(InvalidArgumentError, match=message):
        input_output_types(lookup_op("AddN"), {"T": F, "N": count})


def test_ranges() -> None:
    """Each declared argument has a range of ports, in order."""
    inputs, outputs = name_ranges(lookup_op("Case"), {"Tin": (F, S), "Tout": (F,)})
    assert inputs == {"branch_index": range(1), "input": range(1, 3)}
    assert outputs == {"output": range(1)}
