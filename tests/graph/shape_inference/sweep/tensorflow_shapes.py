# mypy: ignore-errors
# It runs only where TensorFlow is, which has no types.
"""Makes graphs with look-up tables and partitioned variables, and asks TensorFlow what shapes its import infers.

    python -m tests.graph.shape_inference.sweep.tensorflow_shapes

Run in an environment that has TensorFlow; it writes `data/graphs.gz`, see `cases.py`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}

import tensorflow as tf
from tensorflow.python.ops import gen_lookup_ops as ops, lookup_ops

from tests.graph.shape_inference.sweep.cases import write_cases

v1 = tf.compat.v1
INT, TEXT = tf.int64, tf.string
KEYS = {"vector": [4], "matrix": [5, 2], "unknown": None, "open": [None, 2]}


def _markers(shape=(2,)):
    return v1.placeholder(TEXT, shape), v1.placeholder(TEXT, shape)


TABLES = {
    "hash": lambda: ops.hash_table_v2(TEXT, INT),
    "hash of the first version": lambda: ops.hash_table(TEXT, INT),
    "mutable": lambda: ops.mutable_hash_table_v2(TEXT, INT),
    "mutable of the first version": lambda: ops.mutable_hash_table(TEXT, INT),
    "of tensors": lambda: ops.mutable_hash_table_of_tensors_v2(TEXT, INT, value_shape=[7]),
    "of open tensors": lambda: ops.mutable_hash_table_of_tensors_v2(TEXT, INT, value_shape=tf.TensorShape([None])),
    "of tensors of the first version": lambda: ops.mutable_hash_table_of_tensors(TEXT, INT, value_shape=[7]),
    "dense": lambda: ops.mutable_dense_hash_table_v2(*_markers(), INT, value_shape=[7]),
    "dense with scalar keys": lambda: ops.mutable_dense_hash_table_v2(*_markers(()), INT),
    "dense with unknown keys": lambda: ops.mutable_dense_hash_table_v2(*_markers(None), INT, value_shape=[7]),
    "anonymous": lambda: ops.anonymous_hash_table(TEXT, INT),
    "anonymous mutable": lambda: ops.anonymous_mutable_hash_table(TEXT, INT),
    "anonymous of tensors": lambda: ops.anonymous_mutable_hash_table_of_tensors(TEXT, INT, value_shape=[7]),
    "anonymous dense": lambda: ops.anonymous_mutable_dense_hash_table(*_markers(), INT, value_shape=[7]),
}
PARTITIONERS = {
    "fixed": v1.fixed_size_partitioner(3),
    "columns": v1.fixed_size_partitioner(2, axis=1),
    "one part": v1.fixed_size_partitioner(1),
    "min and max": v1.min_max_variable_partitioner(max_partitions=4, min_slice_size=16),
    "size of axis": v1.variable_axis_size_partitioner(64, max_shards=5),
}


def _find(table, keys):
    default = v1.placeholder(INT, None)
    return (ops.lookup_table_find_v2 if table.dtype == tf.resource else ops.lookup_table_find)(table, keys, default)


def _reads(make: Callable[[], object]) -> None:
    """Everything that is read from a table."""
    table = make()
    suffix = "_v2" if table.dtype == tf.resource else ""
    for shape in KEYS.values():
        _find(table, v1.placeholder(TEXT, shape))
    getattr(ops, f"lookup_table_size{suffix}")(table)
    getattr(ops, f"lookup_table_export{suffix}")(table, TEXT, INT)


def _in_functions(make: Callable[[], object]) -> None:
    """A table that a function gets, one that functions of functions get, and one that a function makes."""
    keys, table = v1.placeholder(TEXT, [4, 2]), make()

    @tf.function(autograph=False)
    def inner(keys):
        return _find(table, keys), ops.lookup_table_size_v2(table), *ops.lookup_table_export_v2(table, TEXT, INT)

    @tf.function(autograph=False)
    def outer(keys):
        return [tf.identity(value) for value in inner(keys)]

    inner(keys)
    outer(keys)
    _find(tf.function(make, autograph=False)(), keys)


def _in_branches(make: Callable[[], object]) -> None:
    keys, table = v1.placeholder(TEXT, [4, 2]), make()
    v1.cond(v1.placeholder(tf.bool, []), lambda: _find(table, keys), lambda: 1 + _find(table, keys))
    _find(tf.identity(table), keys)


def _tables_of_the_library() -> None:
    """As programs make them."""
    filled = lookup_ops.KeyValueTensorInitializer(["a"], tf.constant([1], INT), TEXT, INT)
    static = lookup_ops.StaticHashTable(filled, -1)
    buckets = lookup_ops.StaticVocabularyTable(filled, 3)
    mutable = lookup_ops.MutableHashTable(TEXT, tf.float32, tf.constant([0.0, 0.0]))
    dense = lookup_ops.DenseHashTable(INT, tf.float32, tf.constant([0.0, 0.0]), -1, -2)
    for table, dtype in ((static, TEXT), (buckets, TEXT), (mutable, TEXT), (dense, INT)):
        table.lookup(v1.placeholder(dtype, [4, 5]))
        table.size()
    for table in (static, mutable, dense):
        table.export()


def _partitioned(partitioner, *, use_resource: bool) -> None:
    """A variable in parts that is read as a whole, by rows and by slices, changed, saved and restored."""
    with v1.variable_scope("model", use_resource=use_resource, partitioner=partitioner):
        parts = v1.get_variable("v", (10, 4), initializer=v1.zeros_initializer())
        v1.get_variable("w", (10, 4), initializer=v1.random_normal_initializer())
    tf.matmul(v1.placeholder(tf.float32, [2, 10]), tf.convert_to_tensor(parts))
    v1.nn.embedding_lookup(list(parts), v1.placeholder(INT, [3]), partition_strategy="div")
    for part in parts:
        part.assign_add(tf.ones_like(part))
        if use_resource:
            part.gather_nd(v1.placeholder(tf.int32, [6, 1]))
            part.sparse_read(v1.placeholder(tf.int32, [None, 2]))
    v1.train.Saver()


def _graphs() -> Iterator[tuple[str, Callable[[], object]]]:
    for name, make in TABLES.items():
        yield f"table {name}", lambda make=make: _reads(make)
        if "first version" not in name:
            yield f"table {name} in functions", lambda make=make: _in_functions(make)
            yield f"table {name} in branches", lambda make=make: _in_branches(make)
    yield "tables of the library", _tables_of_the_library
    for name, partitioner in PARTITIONERS.items():
        for kind in (True, False):
            label = f"{'resource' if kind else 'reference'} in parts, {name}"
            yield label, lambda partitioner=partitioner, kind=kind: _partitioned(partitioner, use_resource=kind)


def _case(make: Callable[[], object]) -> tuple[bytes, dict[str, list[int | None] | None]]:
    """The graph that `make` makes, and the shapes of all its tensors after an import, which forgets `set_shape`."""
    with tf.Graph().as_default() as graph:
        make()
    graph_def = graph.as_graph_def()
    with tf.Graph().as_default() as imported:
        tf.import_graph_def(graph_def, name="")
    tensors = [tensor for op in imported.get_operations() for tensor in op.outputs]
    shapes = {tensor.name: None if tensor.shape.rank is None else tensor.shape.as_list() for tensor in tensors}
    return graph_def.SerializeToString(deterministic=True), shapes


if __name__ == "__main__":
    write_cases((name, *_case(make)) for name, make in _graphs())
