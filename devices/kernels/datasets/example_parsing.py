"""ParseExampleDataset: batches of serialised Examples become the features in them, ordered by their names.

A dense feature is a tensor, a sparse one a vector of three variants (as SerializeSparse gives), a ragged one a variant.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ....errors import InvalidArgumentError
from ....graph.dtypes import Array, DataType
from ..carried import carrying
from ..parsing.examples import Keys, ParsedRecords, Schema, check_keys, parsed, schema_of, texts
from ..registry import Construction, Kernel, kernel
from ..sparse.ragged_variants import RaggedValue
from ..sparse.serialized_sparse import serialized_row
from .dataset import Dataset, Element, ElementSpec, Iterator, PullSteps
from .transformation import Transformed, transforming

Parse = Callable[[Array], Element]


class _ParsingIterator(Iterator):
    __slots__ = ("_parse", "_source")

    def __init__(self, source: Iterator, parse: Parse) -> None:
        self._source = source
        self._parse = parse

    def next(self) -> PullSteps[Element | None]:
        """As `Iterator.next`."""
        element = yield from self._source.next()
        return None if element is None else self._parse(element[0])


@dataclass(frozen=True, slots=True, eq=False)
class _Parsing(Transformed):
    parse: Parse

    def iterator(self) -> Iterator:
        return _ParsingIterator(self.source.iterator(), self.parse)


def _parser(schema: Schema, keys: Keys, defaults: tuple[Array, ...]) -> Parse:
    names = [name for of_one_sort in keys for name in of_one_sort]
    order = sorted(range(len(names)), key=names.__getitem__)

    def parse(records: Array) -> Element:
        sparse, dense, ragged = parsed(schema, ParsedRecords(records.tolist(), []), keys, defaults)
        rows = [
            serialized_row(parts, dtype, as_variants=True)
            for parts, dtype in zip(sparse, schema.sparse_types, strict=True)
        ]
        variants = [
            carrying(RaggedValue((splits,), values, dtype))
            for (values, splits), dtype in zip(ragged, schema.ragged_types, strict=True)
        ]
        components = [*rows, *dense, *variants]
        return tuple([components[i] for i in order])

    return parse


@kernel("ParseExampleDataset", "ParseExampleDatasetV2", "ExperimentalParseExampleDataset")
def parse_example_dataset(node: Construction) -> Kernel:
    """The features of each batch of records."""
    schema, attrs = schema_of(node), node.attrs
    keys = texts(attrs["sparse_keys"]), texts(attrs["dense_keys"]), texts(attrs.get("ragged_keys", ()))

    def make(form: ElementSpec, source: Dataset, _parallel: Array, *defaults: Array) -> Dataset:
        check_keys(schema, keys, defaults)
        if source.form.types != (DataType.STRING,) or source.form.shapes[0] == ():
            raise InvalidArgumentError("Input dataset should be a dataset of vectors of strings.")
        return _Parsing(form, source, _parser(schema, keys, defaults))

    return transforming(node, make)
