"""Writes the cases of what loops keep in memory that tests read: graphs, and the peaks of TensorFlow's allocator.

    python tools/make_loop_memory.py tests/devices/timing/memory/data        (in an environment with TensorFlow)

A peak is the highest running sum of the allocation records of RunMetadata: temporaries and loop variables included,
constants of the graph and feeds not. Everything runs on one CPU device with one thread of each kind and without graph
rewriting. `peaks.json` has the smallest and the largest of five runs. Loops run one iteration at a time; in the cases
`..._parallel` ten, as is the default.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

Build = Callable[[Any], Any]  # Any: TensorFlow has no types
PARALLEL = 10
OVERLAPPING = ("power", "nested", "mapped", "scanned", "lstm", "lstm_long", "read_later", "queue")
"""cases whose loops also run several iterations at a time"""


class Framework:
    """TensorFlow, and how many iterations loops run at a time."""

    def __init__(self, tf: Any, parallel: int) -> None:
        self._tf = tf
        self.parallel = parallel

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tf, name)


def cases(tf: Any) -> dict[str, tuple[Build, bool]]:
    """By name: what builds the graph on a fed scalar, and whether with control flow of version 2."""
    both = {
        "power": power(tf, 30, 128),
        "power_long": power(tf, 100, 64),
        "nested": nested(tf, 5, 6, 64),
        "mapped": mapped(tf, 100, 1024),
        "scanned": scanned(tf, 30, 1024),
        "lstm": lstm(tf, 20, 16, 32),
        "lstm_long": lstm(tf, 100, 16, 16),
        "read_later": read_later(tf, 100, 1024),
        "queue": queue(tf, 40, 1024),
    }
    named = {f"{name}_v{v}": (build, v == 2) for name, build in both.items() for v in (1, 2)}
    lists = {"lists": lists_of(tf, 30, 1024), "lists_long": lists_of(tf, 100, 1024)}
    objects = {"stack": stack(tf, 100, 1024), "many": many(tf, 20, 1024), "staged": staged(tf, 10, 1024)}
    named.update({name: (build, True) for name, build in lists.items()})
    named.update({name: (build, False) for name, build in objects.items()})
    return named


def loop(tf: Any, cond: Any, body: Any, variables: Any, **options: Any) -> Any:
    """A loop."""
    return tf.while_loop(cond, body, variables, parallel_iterations=tf.parallel, **options)


def gradient(tf: Any, y: Any, x: Any) -> Any:
    """A number that depends on the gradient of a sum."""
    return tf.reduce_sum(tf.compat.v1.gradients(tf.reduce_sum(y), x)[0])


def power(tf: Any, count: int, size: int) -> Build:
    """The gradient of products in a loop."""

    def build(x: Any) -> Any:
        w, start = tf.fill([size, size], x) * (1.0 / size), tf.ones([size, size]) * x
        step = lambda i, y: (i + 1, tf.tanh(tf.matmul(y, w)))  # noqa: E731 - as loops are written
        return gradient(tf, loop(tf, lambda i, _: i < count, step, [tf.constant(0), start])[1], w)

    return build


def nested(tf: Any, outer: int, inner: int, size: int) -> Build:
    """The gradient of a loop in a loop."""

    def build(x: Any) -> Any:
        w, start = tf.fill([size, size], x) * (1.0 / size), tf.ones([size, size]) * x

        def inside(y: Any) -> Any:
            step = lambda j, z: (j + 1, tf.tanh(tf.matmul(z, w)))  # noqa: E731 - as loops are written
            return loop(tf, lambda j, _: j < inner, step, [tf.constant(0), y])[1]

        step = lambda i, y: (i + 1, inside(y) * y)  # noqa: E731 - as loops are written
        return gradient(tf, loop(tf, lambda i, _: i < outer, step, [tf.constant(0), start])[1], w)

    return build


def mapped(tf: Any, count: int, size: int) -> Build:
    """The gradient of `map_fn`."""

    def build(x: Any) -> Any:
        rows = tf.fill([count, size], x)
        return gradient(
            tf, tf.map_fn(lambda row: tf.exp(row) * tf.tanh(row), rows, parallel_iterations=tf.parallel), rows
        )

    return build


def scanned(tf: Any, count: int, size: int) -> Build:
    """The gradient of `scan`."""

    def build(x: Any) -> Any:
        rows = tf.fill([count, size], x)
        step = lambda sum_, row: tf.tanh(sum_) * row  # noqa: E731 - as loops are written
        return gradient(tf, tf.scan(step, rows, initializer=tf.zeros([size]), parallel_iterations=tf.parallel), rows)

    return build


def lstm(tf: Any, count: int, batch: int, size: int) -> Build:
    """A training step of a recurrent layer that reads one array and writes another."""

    def build(x: Any) -> Any:
        w = tf.fill([2 * size, 4 * size], x / (2 * size))
        read, written = tf.TensorArray(tf.float32, count).unstack(tf.fill([count, batch, size], x)), None
        written = tf.TensorArray(tf.float32, count)

        def step(i: Any, h: Any, c: Any, out: Any) -> Any:
            a, f, o, k = tf.split(tf.matmul(tf.concat([read.read(i), h], 1), w), 4, 1)
            c = tf.sigmoid(f) * c + tf.sigmoid(a) * tf.tanh(k)
            h = tf.sigmoid(o) * tf.tanh(c)
            return i + 1, h, c, out.write(i, h)

        zeros = tf.zeros([batch, size])
        _, h, _, out = loop(tf, lambda i, *_: i < count, step, [tf.constant(0), zeros, zeros, written])
        return gradient(tf, tf.concat([tf.reshape(out.stack(), [-1]), tf.reshape(h, [-1])], 0), w)

    return build


def read_later(tf: Any, count: int, size: int) -> Build:
    """An array that one loop writes and another reads; no gradient."""

    def build(x: Any) -> Any:
        write = lambda i, array: (i + 1, array.write(i, tf.fill([size], x) * 2))  # noqa: E731 - as loops are written
        _, array = loop(tf, lambda i, _: i < count, write, [tf.constant(0), tf.TensorArray(tf.float32, count)])
        read = lambda i, s: (i + 1, s + tf.reduce_sum(array.read(i)))  # noqa: E731 - as loops are written
        return loop(tf, lambda i, _: i < count, read, [tf.constant(0), x])[1]

    return build


def queue(tf: Any, count: int, size: int) -> Build:
    """A queue that one loop fills and another drains."""

    def build(x: Any) -> Any:
        elements = tf.queue.FIFOQueue(count, [tf.float32], [[size]])

        def put(i: Any, y: Any) -> Any:
            with tf.control_dependencies([elements.enqueue(y * tf.cast(i, tf.float32))]):
                return i + 1, y

        i, _ = loop(tf, lambda i, _: i < count, put, [tf.constant(0), tf.fill([size], x)])
        with tf.control_dependencies([i]):
            start = tf.identity(x)
        take = lambda j, s: (j + 1, s + tf.reduce_sum(elements.dequeue()))  # noqa: E731 - as loops are written
        return loop(tf, lambda j, _: j < count, take, [tf.constant(0), start])[1]

    return build


def many(tf: Any, count: int, size: int) -> Build:
    """A queue that gets many elements at once and gives them in two halves."""

    def build(x: Any) -> Any:
        elements = tf.queue.FIFOQueue(count, [tf.float32], [[size]])
        with tf.control_dependencies([elements.enqueue_many(tf.fill([count, size], x))]):
            half = tf.constant(count // 2)
        first = elements.dequeue_many(half)
        with tf.control_dependencies([first]):
            second = elements.dequeue_many(tf.constant(count - count // 2))
        return tf.reduce_sum(first) + tf.reduce_sum(second)

    return build


def staged(tf: Any, count: int, size: int) -> Build:
    """A staging area that is filled and then emptied."""

    def build(x: Any) -> Any:
        area = {"shared_name": "area", "capacity": 0}
        puts = [tf.raw_ops.Stage(values=[tf.fill([size], x) * float(k)], **area) for k in range(count)]
        with tf.control_dependencies(puts):
            sums = [tf.identity(x)]
        for _ in range(count):
            with tf.control_dependencies(sums[-1:]):
                taken = tf.raw_ops.Unstage(dtypes=[tf.float32], **area)[0]
            sums.append(tf.reduce_sum(tf.ensure_shape(taken, [size])))
        return tf.add_n(sums)

    return build


def stack(tf: Any, count: int, size: int) -> Build:
    """A stack that one loop fills and another empties."""

    def build(x: Any) -> Any:
        handle = tf.raw_ops.StackV2(max_size=tf.constant(-1), elem_type=tf.float32, stack_name="s")

        def push(i: Any, y: Any) -> Any:
            with tf.control_dependencies([tf.raw_ops.StackPushV2(handle=handle, elem=y * 2)]):
                return i + 1, y

        i, _ = loop(tf, lambda i, _: i < count, push, [tf.constant(0), tf.fill([size], x)])
        with tf.control_dependencies([i]):
            start = tf.identity(x)

        def pop(j: Any, s: Any) -> Any:
            with tf.control_dependencies([i, j]):
                element = tf.raw_ops.StackPopV2(handle=handle, elem_type=tf.float32)
            return j + 1, s + tf.reduce_sum(element)

        return loop(tf, lambda j, _: j < count, pop, [tf.constant(0), start])[1]

    return build


def lists_of(tf: Any, count: int, size: int) -> Build:
    """A list that one loop fills and another empties, writing into what it takes out."""

    def build(x: Any) -> Any:
        shape, raw = tf.constant([size]), tf.raw_ops
        start = raw.EmptyTensorList(element_shape=shape, max_num_elements=tf.constant(-1), element_dtype=tf.float32)
        any_list, any_shape = tf.TensorShape(None), tf.TensorShape([])

        def push(i: Any, items: Any) -> Any:
            return i + 1, raw.TensorListPushBack(input_handle=items, tensor=tf.fill([size], x) + 1)

        def pop(i: Any, items: Any, s: Any) -> Any:
            items, item = raw.TensorListPopBack(input_handle=items, element_shape=shape, element_dtype=tf.float32)
            return i + 1, items, s + tf.exp(item)

        ends = [any_shape, any_list]
        items = loop(tf, lambda i, _: i < count, push, [tf.constant(0), start], shape_invariants=ends)[1]
        variables = [tf.constant(0), items, tf.zeros([size])]
        ends = [*ends, tf.TensorShape([size])]
        return tf.reduce_sum(loop(tf, lambda i, *_: i < count, pop, variables, shape_invariants=ends)[2])

    return build


def peak_of(metadata: Any) -> int:
    """The highest running sum of what was allocated and freed; of one instant frees come first."""
    records = [
        (record.alloc_micros, record.alloc_bytes)
        for device in metadata.step_stats.dev_stats
        for node in device.node_stats
        for memory in node.memory
        for record in memory.allocation_records
    ]
    in_use = highest = 0
    for _, size in sorted(records):
        in_use += size
        highest = max(highest, in_use)
    return highest


def measured(tf: Any, build: Build, *, is_v2: bool) -> tuple[bytes, list[int]]:
    """The graph, and the peaks of five steps."""
    v1 = tf.compat.v1
    (v1.enable_control_flow_v2 if is_v2 else v1.disable_control_flow_v2)()
    config = v1.ConfigProto(inter_op_parallelism_threads=1, intra_op_parallelism_threads=1)
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.optimizer_options.opt_level = v1.OptimizerOptions.L0
    options = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE)
    peaks = []
    with tf.Graph().as_default() as graph, v1.Session(config=config) as session:
        out = tf.identity(build(v1.placeholder(tf.float32, [], name="x")), name="out")
        for _ in range(5):
            metadata = v1.RunMetadata()
            session.run(out, {"x:0": 0.5}, options=options, run_metadata=metadata)
            peaks.append(peak_of(metadata))
        return graph.as_graph_def().SerializeToString(deterministic=True), peaks


def main() -> None:
    """Writes all cases into the folder that is named."""
    import tensorflow as tf  # in the environment of the reference only

    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    peaks = {}
    one, ten = (cases(Framework(tf, parallel)) for parallel in (1, PARALLEL))
    of_ten = {f"{name}_parallel": case for name, case in ten.items() if name[: name.rfind("_v")] in OVERLAPPING}
    for name, (build, is_v2) in {**one, **of_ten}.items():
        graph, of_runs = measured(tf, build, is_v2=is_v2)
        (folder / f"{name}.graph.pb").write_bytes(graph)
        peaks[name] = [min(of_runs), max(of_runs)]
        print(name, *peaks[name])
    (folder / "peaks.json").write_text(json.dumps({"tensorflow": tf.__version__, "peaks": peaks}, indent=1) + "\n")


if __name__ == "__main__":
    main()
