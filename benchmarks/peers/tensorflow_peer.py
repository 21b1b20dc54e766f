"""TensorFlow: imports graphs and runs them in sessions.

Grappler, the graph optimiser and XLA are off, so that TensorFlow runs the graph as it is, as Partita does.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Mapping, Sequence
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np

from benchmarks.memory import resident_bytes
from benchmarks.peers.serving import Seconds, serve, timed

Shapes = Mapping[str, Sequence[int]]
# Imported by name, as type checkers have no TensorFlow to look into.
tf: Any = import_module("tensorflow")
c_api: Any = import_module("tensorflow.python.client.pywrap_tf_session")
c_api_util: Any = import_module("tensorflow.python.framework.c_api_util")
config_pb2: Any = import_module("tensorflow.core.protobuf.config_pb2")

_kept: list[Any] = []  # graphs whose memory is being measured, and sessions by number


def _config(devices: int, threads: int) -> Any:  # as everything of TensorFlow's
    config = config_pb2.ConfigProto(device_count={"CPU": devices})
    config.intra_op_parallelism_threads = config.inter_op_parallelism_threads = threads
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.optimizer_options.opt_level = -1
    config.graph_options.optimizer_options.global_jit_level = -1
    return config


@cache
def _graph_def(file: str) -> Any:
    return tf.compat.v1.GraphDef.FromString(Path(file).read_bytes())


@cache
def _graph(file: str) -> Any:
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(_graph_def(file), name="")
    return graph


def _imported_by_c_api(data: bytes) -> Any:
    graph = tf.Graph()
    with c_api_util.tf_buffer(data) as buffer, graph._c_graph.get() as c_graph:
        c_api.TF_GraphImportGraphDefWithResults(c_graph, buffer, c_api.TF_NewImportGraphDefOptions())
    return graph


def import_python(file: str) -> Seconds:
    """`tf.import_graph_def` of a message that is parsed already."""
    graph_def = _graph_def(file)
    with tf.Graph().as_default():
        return timed(lambda: tf.import_graph_def(graph_def, name=""))


def import_c(file: str) -> Seconds:
    """The C function behind `tf.import_graph_def`, from bytes."""
    data = Path(file).read_bytes()
    return timed(lambda: _imported_by_c_api(data))


def graph_bytes(file: str, copies: int) -> float:
    """Memory of an imported graph: the growth of the process when more copies are imported."""
    data = Path(file).read_bytes()
    _kept.append(_imported_by_c_api(data))
    gc.collect()
    before = resident_bytes()
    _kept.extend(_imported_by_c_api(data) for _ in range(copies))
    gc.collect()
    after = resident_bytes()
    _kept.clear()
    return (after - before) / copies


def _runner(file: str, devices: int, feeds: Shapes, names: Sequence[Sequence[str]], threads: int) -> Any:
    session = tf.compat.v1.Session(graph=_graph(file), config=_config(devices, threads))
    values = {name: np.full(shape, 0.5, np.float32) for name, shape in feeds.items()}
    fetches, targets = names
    wanted = [*fetches, *targets]  # what has no value gives None
    return session, partial(session.run, wanted, values)


def set_up(file: str, devices: int, feeds: Shapes, fetches: Sequence[str], targets: Sequence[str]) -> Seconds:
    """The first run minus the second: pruning, placing, partitioning and making executors."""
    session, run = _runner(file, devices, feeds, (fetches, targets), 0)
    first, second = timed(run), timed(run)
    session.close()
    return first[0] - second[0], first[1] - second[1]


def start(
    file: str, devices: int, feeds: Shapes, fetches: Sequence[str], targets: Sequence[str], threads: int
) -> tuple[int, list[Any]]:
    """Opens a session and runs once: its number, and the fetched values flattened, at most 1000 of each."""
    _, run = _runner(file, devices, feeds, (fetches, targets), threads)
    values = run()[: len(fetches)]
    _kept.append(run)
    return len(_kept) - 1, [np.ravel(value)[:1000].tolist() for value in values]


def steps(number: int, count: int) -> Seconds:
    """Time of some steps in one of the sessions."""
    return timed(_kept[number], count)


def gradients(file: str, ys: Sequence[str], xs: Sequence[str]) -> Seconds:
    """`tf.gradients` in a freshly imported graph, as each call makes its graph larger."""
    graph_def = _graph_def(file)
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(graph_def, name="")
        tensors = [[graph.get_tensor_by_name(name) for name in names] for names in (ys, xs)]
        return timed(lambda: tf.gradients(*tensors))


def measure_costs(file: str, devices: int, fetches: Sequence[str]) -> Seconds:
    """Grappler's simulation of one step on that many virtual CPUs."""
    cluster_py: Any = import_module("tensorflow.python.grappler.cluster")
    item_py: Any = import_module("tensorflow.python.grappler.item")
    properties_pb2: Any = import_module("tensorflow.core.protobuf.device_properties_pb2")
    cpu = properties_pb2.DeviceProperties(type="CPU", frequency=1000, num_cores=1, bandwidth=10**8)
    named = [
        properties_pb2.NamedDevice(name=f"/job:localhost/replica:0/task:0/device:CPU:{index}", properties=cpu)
        for index in range(devices)
    ]
    meta_graph = tf.compat.v1.MetaGraphDef(graph_def=_graph_def(file))
    meta_graph.collection_def["train_op"].node_list.value.extend(fetches)  # what Grappler takes for fetches
    cluster, item = cluster_py.Cluster(devices=named), item_py.Item(meta_graph)
    return timed(lambda: cluster.MeasureCosts(item))


def installed_bytes() -> int:
    """Size of the installed package, without compiled Python."""
    folder = Path(tf.__file__).parent
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc")


if __name__ == "__main__":
    serve(
        {
            "import_python": import_python,
            "import_c": import_c,
            "graph_bytes": graph_bytes,
            "set_up": set_up,
            "start": start,
            "steps": steps,
            "gradients": gradients,
            "measure_costs": measure_costs,
            "installed_bytes": installed_bytes,
        }
    )
