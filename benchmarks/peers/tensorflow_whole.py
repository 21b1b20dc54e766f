"""A whole process of TensorFlow: reads a file, runs one request, and prints its peak memory; as
`benchmarks.whole_partita`.
"""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np

from benchmarks.memory import peak_bytes


def main(request: str) -> None:
    """Runs the request."""
    tf: Any = import_module("tensorflow")  # by name, as type checkers have no TensorFlow to look into
    asked = json.loads(request)
    graph_def = tf.compat.v1.GraphDef.FromString(Path(asked["file"]).read_bytes())
    feeds = {name: np.full(shape, 0.5, np.float32) for name, shape in asked["feeds"].items()}
    with tf.Graph().as_default():
        tf.import_graph_def(graph_def, name="")
        config = tf.compat.v1.ConfigProto(device_count={"CPU": asked["devices"]})
        with tf.compat.v1.Session(config=config) as session:
            session.run([*asked["fetches"], *asked["targets"]], feeds)
    print(peak_bytes())


if __name__ == "__main__":
    main(sys.argv[1])
