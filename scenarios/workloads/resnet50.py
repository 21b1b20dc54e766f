"""ResNet-50 (He, Zhang, Ren, Sun: Deep residual learning for image recognition, 2015, table 1) as a pipeline.

Placeholder: "images", float [images,side,side,3]. Result: "logits", float [images,1000]. Target: "initialise". All
micro-batches use the same variables, each on the device of its layer. A device takes the next micro-batch when it has
finished the one before, so the devices behind it need not wait for all micro-batches.

Strides are in the 3 x 3 convolutions, as in most implementations since; normalisation is that of inference.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...graph import GraphDef
from ...graph.builder.builder import GraphBuilder
from ...graph.builder.handles import Tensor
from .layers import Layers
from .parameters import Variables

CLASSES = 1000
BLOCKS = (3, 4, 6, 3)  # bottleneck blocks of each stage; a stage doubles the channels and halves the sides
_BRANCH_GAIN = 0.25  # of the last normalisation of a block, so that values do not grow over 16 sums


def resnet50(devices: Sequence[str], side: int, images: int, micro_batches: int) -> GraphDef:
    """The pipeline: block k of 16 on device k * len(devices) // 16. `micro_batches`, at least 2, divides `images`."""
    b = GraphBuilder()
    parameters = Variables(b)
    with b.device("/device:CPU:0"):
        batch = b.placeholder("images", "float32", (images, side, side, 3))
        slices = b.op("Split", 0, batch, num_split=micro_batches, name="micro_batches")
    layers, done = Layers(b, parameters), dict[str, Tensor]()
    logits = [_network(b, layers, x, devices, done) for x in slices]
    b.op("ConcatV2", logits, 0, name="logits", device="/device:CPU:0")
    parameters.initialiser()
    return b.graph_def()


def _network(b: GraphBuilder, layers: Layers, x: Tensor, devices: Sequence[str], done: dict[str, Tensor]) -> Tensor:
    """One micro-batch from images to logits; `done` maps a device to its last tensor of the micro-batch before."""
    with b.device(devices[0]):
        x = _after(b, x, done.get(devices[0]))
        x = _conv_norm(b, layers, x, 3, 64, 7, "stem", stride=2)
        x = b.op("MaxPool", x, ksize=[1, 3, 3, 1], strides=[1, 2, 2, 1], padding="SAME", name="stem/pool")[0]
    channels, current = 64, devices[0]
    for number, (stage, k) in enumerate((stage, k) for stage, blocks in enumerate(BLOCKS) for k in range(blocks)):
        device, width = devices[number * len(devices) // sum(BLOCKS)], 64 << stage
        with b.device(device):
            if device != current:
                done[current], current = x, device
                x = _after(b, x, done.get(device))
            x = _block(b, layers, x, channels, width, f"stage{stage + 1}/block{k + 1}", 2 if stage and not k else 1)
        channels = 4 * width
    with b.device(current):
        features = b.op("Mean", x, [1, 2], name="features")[0]
        done[current] = layers.dense(features, channels, CLASSES, "classifier")
    return done[current]


def _after(b: GraphBuilder, x: Tensor, before: Tensor | None) -> Tensor:
    """x, with a control edge from `before`."""
    return x if before is None else b.identity(x, control=[before], name="entry")


def _block(b: GraphBuilder, layers: Layers, x: Tensor, channels: int, width: int, name: str, stride: int) -> Tensor:
    """A bottleneck: 1 x 1, 3 x 3 and 1 x 1 convolutions beside a shortcut, which is projected where shapes change."""
    y = _conv_norm(b, layers, x, channels, width, 1, f"{name}/reduce")
    y = _conv_norm(b, layers, y, width, width, 3, f"{name}/middle", stride=stride)
    y = layers.conv(y, width, 4 * width, 1, f"{name}/expand")
    y = layers.batch_norm(y, 4 * width, f"{name}/expand", _BRANCH_GAIN)
    if channels != 4 * width:
        x = layers.conv(x, channels, 4 * width, 1, f"{name}/shortcut", stride)
        x = layers.batch_norm(x, 4 * width, f"{name}/shortcut")
    return b.op("Relu", b.op("AddV2", x, y, name=f"{name}/sum"), name=f"{name}/out")[0]


def _conv_norm(
    b: GraphBuilder,
    layers: Layers,
    x: Tensor,
    channels_in: int,
    channels_out: int,
    size: int,
    name: str,
    stride: int = 1,
) -> Tensor:
    """Convolution, normalisation and Relu."""
    x = layers.batch_norm(layers.conv(x, channels_in, channels_out, size, name, stride), channels_out, name)
    return b.op("Relu", x, name=f"{name}/relu")[0]
