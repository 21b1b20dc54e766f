"""The rows "cnn/...": images/s of a simulated training step, beside what a machine of 2017 measured (column "peer").

Ours is the simulation, the ratio is simulated / measured, and a ratio of 1 is right: there is no verdict. Per network
two rows: by the roofline, and by the fitted source, which is the roofline where the catalog has no op rows of a GPU
(P100 and K80 have none: both rows agree).

Measured: TensorFlow's benchmark page of 2017, tf_cnn_benchmarks, synthetic images, one GPU. Its variables were on the
host ("parameter server on the CPU") for the first two networks; then ops without a GPU kernel, and the updates, run on
the host, with their copies. Graphs are NHWC where that program's were NCHW: costs are the same.

Nothing is fitted to these figures. What the constant efficiencies miss: VGG-16 and AlexNet on the P100 are measured
above the peak of direct convolutions (154 images/s * 93 GFLOP = 14 TFLOP/s of 10.6), as cuDNN's Winograd transforms
save multiplications; small channels reach less than 80 % of the peak; and a K80's datasheet clock is the boost clock,
which two GPUs of a board share.
"""

from __future__ import annotations

import csv
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

from partita.devices import cut, parse_cluster, simulate
from partita.scenarios.workloads.image_training import image_training

from .bench import Bench
from .rows import PUBLISHED, Case, Figure, Measured

_HOST, _GPU = "/device:CPU:0", "/device:GPU:0"
_QUICK_IMAGES = 2
_CLUSTERS = {"P100": ("Xeon-E5-2698-v4", "P100-SXM2"), "K80": ("Xeon-E5-2686-v4", "K80")}
_PLATFORMS = {"P100": "DGX-1 P100", "K80": "EC2 p2.8xlarge 8xK80"}


class Setting(NamedTuple):
    """A GPU, a network and a batch, where variables are, and the images/s measured (TensorFlow's page of 2017)."""

    gpu: str
    network: str
    images: int
    variables_on: str
    images_per_s: float


SETTINGS = [
    Setting("P100", "ResNet-50", 64, _HOST, 219.0),
    Setting("P100", "ResNet-50", 32, _HOST, 195.0),
    Setting("P100", "InceptionV3", 64, _HOST, 142.0),
    Setting("P100", "InceptionV3", 32, _HOST, 128.0),
    Setting("P100", "VGG16", 64, _GPU, 154.0),
    Setting("P100", "VGG16", 32, _GPU, 144.0),
    Setting("P100", "AlexNet", 512, _GPU, 2987.0),
    Setting("K80", "ResNet-50", 64, _GPU, 51.5),
    Setting("K80", "InceptionV3", 64, _HOST, 30.8),
    Setting("K80", "VGG16", 32, _GPU, 36.3),
    Setting("K80", "AlexNet", 512, _GPU, 684.0),
]


async def _step(bench: Bench, setting: Setting, source: str) -> Measured:
    images = _QUICK_IMAGES if bench.sizes.image < 224 else setting.images
    step = image_training(setting.network, images, _GPU, setting.variables_on)
    cluster = parse_cluster("".join(f'[[device]]\nspec = "{spec}"\n' for spec in _CLUSTERS[setting.gpu]))
    parts = cut(step.graph, cluster, feeds=step.feeds, fetches=step.fetches, targets=step.targets)
    timeline = simulate(parts, cluster, cost_source=_source(source))
    return Measured(Figure(images * 1e9 / timeline.makespan_ns), Figure(_measured(bench, setting)))


def _source(name: str) -> Any:  # Any: a CostSource
    """The source of costs; late, as the fitted one is large."""
    module, cls = {"roofline": ("roofline", "RooflineSource"), "fitted": ("fitted", "FittedSource")}[name]
    return getattr(import_module(f"{_COSTS}.{module}"), cls)()


def _measured(bench: Bench, setting: Setting) -> float:
    """Images/s of the file in the folder of data, if there is one; else of the setting."""
    if bench.data is None:
        return setting.images_per_s
    file = bench.data / "cnn_scaling_tf2017.csv"
    with file.open(newline="") as lines:
        for row in csv.DictReader(lines):
            if (row["platform"], row["data"], row["model"], row["batch_per_gpu"], row["gpus"]) == (
                _PLATFORMS[setting.gpu],
                "synthetic",
                setting.network,
                str(setting.images),
                "1",
            ):
                return float(row["images_per_s"])
    raise ValueError(f"{file} has no row for {setting.network} on one {setting.gpu} with {setting.images} images")


_COSTS = "partita.devices.timing.costs"
SOURCES = ("roofline", "fitted")

CASES = [
    Case(
        f"cnn/{s.gpu} {s.network} x{s.images}, {source}",
        PUBLISHED,
        None,
        partial(_step, setting=s, source=source),
        unit="images/s",
    )
    for s in SETTINGS
    for source in SOURCES
]
