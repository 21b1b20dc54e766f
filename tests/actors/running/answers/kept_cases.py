"""Graphs that call functions whose nodes keep something from call to call: queues and tables without names, generators.

`questions()` gives them; `data/kept_answers.json` has what TensorFlow 2.21 answers in the second of two steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from partita.graph.builder import GraphBuilder
from partita.graph.builder.handles import Tensor
from partita.graph.protos import ConfigProto, FunctionDef, NameAttrList
from tests.function_defs import function_of
from tests.questions import Question, write_questions


def queue(b: GraphBuilder) -> Tensor:
    """How many elements were put into a queue without a name."""
    q = b.op("FIFOQueueV2", component_types=["float32"], shapes=[()], name="q")[0]
    put = b.op("QueueEnqueueV2", q, [b.constant(1.0)])
    return b.op("Cast", b.op("QueueSizeV2", q, control=[put])[0], SrcT="int32", DstT="float32")[0]


def table(b: GraphBuilder) -> Tensor:
    """How many keys are in a table without a name."""
    t = b.op("MutableHashTableV2", key_dtype="int64", value_dtype="int64", name="t")[0]
    size = b.op("LookupTableSizeV2", t)[0]
    put = b.op("LookupTableInsertV2", t, size, size)
    return b.op("Cast", b.op("LookupTableSizeV2", t, control=[put])[0], SrcT="int64", DstT="float32")[0]


def shuffle_queue(b: GraphBuilder) -> Tensor:
    """The elements of a queue in the order that its generator gives."""
    seeds = {"min_after_dequeue": 0, "seed": 3, "seed2": 4}
    q = b.op("RandomShuffleQueueV2", component_types=["float32"], shapes=[()], name="q", attrs=seeds)[0]
    put = b.op("QueueEnqueueManyV2", q, [b.constant(np.arange(6, dtype=np.float32))])
    return b.op("QueueDequeueManyV2", q, b.constant(6), component_types=["float32"], control=[put])[0]


def pool(b: GraphBuilder) -> Tensor:
    """The rows that a pooling draws; a deterministic one draws them again."""
    x = b.constant(np.arange(100, dtype=np.float32).reshape(1, 10, 10, 1))
    attrs = {"pooling_ratio": [1.0, 1.5, 1.5, 1.0], "deterministic": True, "seed": 1, "seed2": 2, "pseudo_random": True}
    return b.op("Cast", b.op("FractionalMaxPool", x, attrs=attrs)[1], SrcT="int64", DstT="float32")[0]


def shuffled(b: GraphBuilder) -> Tensor:
    """The elements of a dataset that is shuffled by seeds."""
    numbers = [b.constant(np.int64(number)) for number in (0, 8, 1, 8, 1, 2, 8)]
    types: dict[str, Any] = {"output_types": ["int64"], "output_shapes": [()]}
    data = b.op("RangeDataset", *numbers[:3], attrs=types)[0]
    data = b.op("ShuffleDataset", data, *numbers[3:6], attrs=types | {"reshuffle_each_iteration": True})[0]
    types["output_shapes"] = [(None,)]
    data = b.op("BatchDataset", data, numbers[6], attrs=types)[0]
    return b.op("Cast", b.op("DatasetToSingleElement", data, attrs=types)[0], SrcT="int64", DstT="float32")[0]


KINDS: tuple[Callable[[GraphBuilder], Tensor], ...] = (queue, table, shuffle_queue, pool, shuffled)


def _function(name: str, kind: Callable[[GraphBuilder], Tensor]) -> FunctionDef:
    b = GraphBuilder()
    result = kind(b)
    function = function_of(name, b.graph_def(), [], [result.name])
    function.signature.is_stateful = True
    return function


def questions() -> list[Question]:
    """One function called twice, on one device or two, or two functions of equal nodes; called or inlined."""
    return [
        _question(kind, inlined=inlined, device=device, second=second)
        for kind in KINDS
        for inlined in (False, True)
        for device, second in (("", "f"), ("/device:CPU:1", "f"), ("", "g"))
    ]


def _question(kind: Callable[[GraphBuilder], Tensor], *, inlined: bool, device: str, second: str) -> Question:
    b = GraphBuilder()
    b.function(_function("f", kind))
    b.function(_function("g", kind))
    attrs: dict[str, Any] = {"Tin": [], "Tout": ["float32"]}
    first = b.op("StatefulPartitionedCall", [], name="c0", attrs=attrs | {"f": NameAttrList(name="f")})
    attrs["f"] = NameAttrList(name=second)
    b.op("StatefulPartitionedCall", [], name="c1", device=device, attrs=attrs, control=[first])
    config = ConfigProto()
    config.graph_options.optimizer_options.do_function_inlining = inlined
    how = f"{'inlined' if inlined else 'called'} {device or '-'} {second}"
    return Question(f"{kind.__name__} {how}", b.graph_def(), [(["c0:0", "c1:0"], [])] * 2, 2, config)


if __name__ == "__main__":
    write_questions(questions())
