"""Slopes of the ops of neural networks are what their gradients say: convolutions, pools, norms, losses."""

from __future__ import annotations

import numpy as np
import pytest

from partita.errors import NotFoundError
from partita.graph.builder import GraphBuilder
from partita.graph.builder.handles import Tensor
from partita.graph.dtypes import Array
from tests.graph.gradients.numeric import SINGLE, Example, between, check, distinct, example, normal, single


def window(**more: object) -> dict[str, object]:
    """Attrs of a pool."""
    return {"ksize": [1, 2, 2, 1], "strides": [1, 2, 1, 1], "padding": "SAME", **more}


def convolution(op: str, x: Array, f: Array, **attrs: object) -> Example:
    """A convolution."""
    return example(lambda b, x, f: b.op(op, x, f, attrs=attrs), x, f, twice=True, rtol=1e-4)


STRIDES = {"strides": [1, 2, 1, 1], "padding": "SAME", "dilations": [1, 1, 2, 1]}
PADDED = {"strides": [1, 1, 2, 1], "padding": "EXPLICIT", "explicit_paddings": [0, 0, 1, 0, 2, 1, 0, 0]}
FRACTIONS = {"pooling_ratio": [1.0, 1.44, 1.5, 1.0], "deterministic": True, "seed": 3, "overlapping": True}
CUBES = {"strides": [1, 1, 2, 1, 1], "padding": "SAME"}

CONVOLUTIONS = {
    "conv": convolution("Conv2D", normal(2, 5, 6, 2), normal(3, 2, 2, 3), **STRIDES),
    "conv padded": convolution("Conv2D", normal(2, 5, 6, 2), normal(3, 2, 2, 3), **PADDED),
    "conv 3d": convolution("Conv3D", normal(1, 4, 5, 4, 2), normal(2, 2, 3, 2, 2), **CUBES),
    "depthwise": convolution(
        "DepthwiseConv2dNative", normal(2, 5, 6, 2), normal(3, 2, 2, 2), strides=[1, 2, 2, 1], padding="VALID"
    ),
    "dilation": example(
        lambda b, x, f: b.op("Dilation2D", x, f, strides=[1, 1, 1, 1], rates=[1, 1, 1, 1], padding="VALID"),
        normal(1, 4, 5, 2),
        normal(2, 2, 2),
    ),
    "bias": example(lambda b, x, y: b.op("BiasAdd", x, y), normal(2, 3, 4), normal(4), twice=True),
    "bias first": example(lambda b, x, y: b.op("BiasAdd", x, y, data_format="NCHW"), normal(2, 3, 4, 2), normal(3)),
    "bias old": example(lambda b, x, y: b.op("BiasAddV1", x, y), normal(2, 3, 4), normal(4)),
    "bias gradient": example(lambda b, g: b.op("BiasAddGrad", g, data_format="NCHW"), normal(2, 3, 4, 2)),
}

POOLS = {
    "max": example(lambda b, x: b.op("MaxPool", x, attrs=window()), distinct(1, 4, 5, 2), twice=True),
    "max v2": example(
        lambda b, x: b.op("MaxPoolV2", x, b.constant([1, 2, 2, 1]), b.constant([1, 2, 1, 1]), padding="SAME"),
        distinct(1, 4, 5, 2),
    ),
    "max 3d": example(
        lambda b, x: b.op("MaxPool3D", x, ksize=[1, 2, 2, 2, 1], strides=[1, 1, 2, 1, 1], padding="VALID"),
        single(distinct(1, 3, 4, 4, 2)),
        **SINGLE,
    ),
    "fractional max": example(lambda b, x: b.op("FractionalMaxPool", x, attrs=FRACTIONS)[0], distinct(1, 6, 5, 2)),
    "fractional mean": example(
        lambda b, x: b.op("FractionalAvgPool", x, attrs=FRACTIONS)[0], normal(1, 6, 5, 2), open_shapes=True
    ),
    "max and where": example(lambda b, x: b.op("MaxPoolWithArgmax", x, attrs=window())[0], distinct(1, 4, 5, 2)),
    "average": example(lambda b, x: b.op("AvgPool", x, attrs=window()), normal(1, 4, 5, 2)),
    "average 3d": example(
        lambda b, x: b.op("AvgPool3D", x, ksize=[1, 2, 2, 2, 1], strides=[1, 1, 2, 1, 1], padding="SAME"),
        single(normal(1, 3, 4, 4, 2)),
        **SINGLE,
    ),
    "average gradient": example(
        lambda b, g: b.op("AvgPoolGrad", b.constant([1, 4, 5, 2]), g, attrs=window()), normal(1, 2, 5, 2)
    ),
    "average gradient 3d": example(
        lambda b, g: b.op(
            "AvgPool3DGrad",
            b.constant([1, 3, 4, 4, 2]),
            g,
            ksize=[1, 1, 2, 2, 1],
            strides=[1, 1, 2, 1, 1],
            padding="VALID",
        ),
        single(normal(1, 3, 2, 3, 2)),
        **SINGLE,
    ),
}


def pool_gradient(op: str, rank: int) -> Example:
    """An op that moves elements between pool and image; where from is fixed."""
    image = distinct(*[1, 4, 4, 4, 2][: rank - 1], 2)
    sizes = {"ksize": [1] + [2] * (rank - 2) + [1], "strides": [1] + [2] * (rank - 2) + [1], "padding": "VALID"}
    back = "GradGrad" not in op

    def build(b: GraphBuilder, g: Tensor) -> Tensor:
        x = b.constant(single(image))
        forward = "MaxPool3D" if rank == 5 else "MaxPool"
        y = b.op(forward, x, attrs=sizes)[0]
        if op.endswith("V2"):
            windows = b.constant(sizes["ksize"]), b.constant(sizes["strides"])
            return b.op(op, x, y, g, *windows, padding="VALID")[0]
        return b.op(op, x, y, g, attrs=sizes)[0]

    pooled = [1] + [2] * (rank - 2) + [2]
    return example(build, single(normal(*(pooled if back else image.shape))), **SINGLE)


POOL_GRADIENTS = {
    op: pool_gradient(op, 5 if "3D" in op else 4)
    for op in (
        "MaxPoolGrad",
        "MaxPoolGradGrad",
        "MaxPoolGradV2",
        "MaxPoolGradGradV2",
        "MaxPool3DGrad",
        "MaxPool3DGradGrad",
    )
}


def batch_norm(op: str, x: Array, *, training: bool, layout: str = "NHWC", twice: bool = True) -> Example:
    """A batch norm of float32 images; given statistics get no gradient."""
    channels = x.shape[layout.index("C")]
    statistic = np.zeros(0) if training else between(1, 2, channels)
    types = {} if op == "FusedBatchNorm" else {"U": "float32"}

    def build(b: GraphBuilder, x: Tensor, scale: Tensor, offset: Tensor) -> Tensor:
        statistics = b.constant(single(statistic)), b.constant(single(statistic))
        attrs = {"is_training": training, "data_format": layout, "epsilon": 0.1, **types}
        return b.op(op, x, scale, offset, *statistics, attrs=attrs)[0]

    xs = single(x), single(between(1, 2, channels)), single(normal(channels))
    return example(build, *xs, twice=twice, **{**SINGLE, "rtol": 4e-2, "atol": 2e-2})


NORMS = {
    "training": batch_norm("FusedBatchNormV3", normal(3, 2, 4, 3), training=True),
    "training, channels first": batch_norm("FusedBatchNormV3", normal(3, 2, 4, 3), training=True, layout="NCHW"),
    "given": batch_norm("FusedBatchNormV3", normal(3, 2, 4, 3), training=False),
    "v2": batch_norm("FusedBatchNormV2", normal(3, 2, 4, 3), training=True),
    "v1": batch_norm("FusedBatchNorm", normal(3, 2, 4, 3), training=False),
    "global": example(
        lambda b, *args: b.op(
            "BatchNormWithGlobalNormalization", *args, variance_epsilon=0.1, scale_after_normalization=True
        ),
        *map(single, (normal(2, 3, 3, 2), normal(2), between(1, 2, 2), normal(2), between(1, 2, 2))),
        **SINGLE,
    ),
    "local response": example(
        lambda b, x: b.op("LRN", x, depth_radius=1, beta=0.7, alpha=0.3), single(normal(1, 2, 2, 5)), **SINGLE
    ),
}

LABELS = np.array([[0.2, 0.5, 0.3], [1.0, 0.0, 0.0]])
LOSSES = {
    "softmax": example(lambda b, x: b.op("Softmax", x), normal(2, 3, 4), twice=True),
    "log softmax": example(lambda b, x: b.op("LogSoftmax", x), normal(2, 4), twice=True),
    "cross entropy": example(lambda b, x, y: b.op("SoftmaxCrossEntropyWithLogits", x, y)[0], normal(2, 3), LABELS),
    "cross entropy twice": example(
        lambda b, x: b.op("SoftmaxCrossEntropyWithLogits", x, b.constant(LABELS, "float64"))[0],
        normal(2, 3),
        twice=True,
    ),
    "cross entropy of a stretched row": example(
        lambda b, x: b.op("SoftmaxCrossEntropyWithLogits", x, b.constant(LABELS, "float64"))[0], normal(1, 3)
    ),
    "sparse cross entropy": example(
        lambda b, x: b.op("SparseSoftmaxCrossEntropyWithLogits", x, b.constant([2, 0]))[0], normal(2, 3), twice=True
    ),
    "ctc": example(
        lambda b, x: b.op(
            "CTCLoss", x, b.constant(np.array([[0, 0], [0, 1], [1, 0]])), b.constant([0, 1, 1]), b.constant([4, 3])
        )[0],
        normal(4, 2, 3),
        rtol=1e-4,
    ),
}


EXAMPLES = CONVOLUTIONS | POOLS | POOL_GRADIENTS | NORMS | LOSSES


@pytest.mark.parametrize("name", EXAMPLES)
async def test_networks(name: str) -> None:
    """Once, and where it says so once again."""
    await EXAMPLES[name].check()


@pytest.mark.parametrize("name", [*CONVOLUTIONS, *LOSSES, "average", "max"])
async def test_networks_of_open_shapes(name: str) -> None:
    """Shapes that are not known before the run."""
    await EXAMPLES[name].check(open_shapes=True, twice=False)


async def test_a_loss_that_cannot_be_differentiated_twice_says_so() -> None:
    """The gradient of a CTC loss has none."""
    with pytest.raises(NotFoundError, match="CTC"):
        await LOSSES["ctc"].check(twice=True)


async def test_an_lstm_over_time() -> None:
    """What flows back from cells and outputs, also where the sequence ends early; the gradient has none itself."""
    shapes = [(3, 2, 2), (2, 3), (2, 3), (5, 12), (3,), (3,), (3,), (12,)]
    xs = [single(normal(*shape, seed=i)) for i, shape in enumerate(shapes)]

    def build(b: GraphBuilder, *xs: Tensor) -> list[Tensor]:
        lstm = b.op("BlockLSTM", b.constant(np.int64(2)), *xs, use_peephole=True, cell_clip=0.0)
        return [lstm[1], lstm[6]]

    await check(build, *xs, step=1e-2, rtol=2e-2, atol=2e-3)
    with pytest.raises(NotFoundError, match="BlockLSTMGrad"):
        await check(build, *xs, step=1e-2, rtol=2e-2, atol=2e-3, twice=True)
