"""The shipped workloads: a function for each name of `names`, from settings to a graph.

Those here spread their nodes over the GPUs 0, 1, ... of the local task; with `gpus=0` all of them are on its CPU. Those
of families of models are spread by a split.
"""

from __future__ import annotations

from ...errors import InvalidArgumentError
from ...graph import Graph, GraphDef
from ..models.bert import BertModel
from ..models.dlrm import DlrmModel
from ..models.gpt import GptModel
from ..models.llama import LlamaModel
from ..models.moe import MoeModel
from ..models.vit import VitModel
from . import (
    cnn as convolutions,
    image_training as images_trained,
    mlp as perceptron,
    reduction as reductions,
    resnet50 as pipeline,
)
from .model_workloads import workload_of
from .training import training_step
from .transformer import TransformerSizes, transformer_encoder

gpt = workload_of(GptModel)
llama = workload_of(LlamaModel)
moe = workload_of(MoeModel)
bert = workload_of(BertModel)
vit = workload_of(VitModel)
dlrm = workload_of(DlrmModel)


def mlp(*, layers: int = 4, features: int = 1024, gpus: int = 1) -> GraphDef:
    """Layer k of `layers`, each `features` wide, is on GPU k * gpus // layers."""
    _check(layers=layers, features=features)
    devices = _devices(gpus)
    placed = [devices[k * len(devices) // layers] for k in range(layers)]
    return perceptron.mlp([features] * (layers + 1), placed)


def cnn(*, gpus: int = 1) -> GraphDef:
    """Three convolutions and a classifier."""
    return convolutions.cnn(_devices(gpus))


def resnet50(*, images: int = 32, side: int = 224, micro_batches: int = 4, gpus: int = 1) -> GraphDef:
    """The 16 blocks cut evenly; `micro_batches` must divide `images`."""
    _check(images=images, side=side, micro_batches=micro_batches - 1)
    _check_divides("micro_batches", micro_batches, "images", images)
    return pipeline.resnet50(_devices(gpus), side, images, micro_batches)


def transformer(
    *,
    layers: int = 12,
    width: int = 768,
    heads: int = 12,
    hidden: int = 3072,
    length: int = 512,
    batch: int = 8,
    gpus: int = 1,
) -> GraphDef:
    """A pre-normalised encoder; `gpus` must divide `heads` and `hidden`, and `heads` `width`."""
    _check(layers=layers, width=width, heads=heads, hidden=hidden, length=length, batch=batch)
    devices = _devices(gpus)
    _check_divides("heads", heads, "width", width)
    _check_divides("gpus", len(devices), "heads", heads)
    _check_divides("gpus", len(devices), "hidden", hidden)
    return transformer_encoder(devices, TransformerSizes(batch, length, width, heads, hidden, layers))


def reduction(*, gpus: int = 8, length: int = 1_000_000, tree: bool = False) -> GraphDef:
    """An array of `length` floats from each GPU."""
    _check(length=length)
    build = reductions.all_to_one_tree if tree else reductions.all_to_one
    return build(_devices(gpus), length)


def training(*, gpus: int = 1, rows: int = 256, kind: str = "resource") -> GraphDef:
    """A replica on each GPU; `gpus` must divide `rows`, and variables are of kind "resource" or "reference"."""
    devices = _devices(gpus)
    _check(rows=rows)
    _check_divides("gpus", len(devices), "rows", rows)
    if kind == "resource":
        return training_step("resource", devices, rows)
    if kind == "reference":
        return training_step("reference", devices, rows)
    raise InvalidArgumentError(f'kind={kind!r} is no kind of variables; give "resource" or "reference"')


def image_training(*, network: str = "ResNet-50", images: int = 64, gpus: int = 1) -> Graph:
    """A network on one GPU (or with `gpus=0` on the CPU), its variables beside it."""
    _check(images=images)
    if network not in images_trained.NETWORKS:
        raise InvalidArgumentError(f"network={network!r} is none of {', '.join(images_trained.NETWORKS)}")
    if gpus > 1:
        raise InvalidArgumentError(f"gpus={gpus}: the step has one replica; give 0 or 1")
    return images_trained.image_training(network, images, *_devices(gpus)).graph


def _devices(gpus: int) -> list[str]:
    if gpus < 0:
        raise InvalidArgumentError(f"gpus={gpus} is no number of GPUs; give 0 or more")
    return [f"/device:GPU:{k}" for k in range(gpus)] or ["/device:CPU:0"]


def _check(**sizes: int) -> None:
    """InvalidArgumentError for a size that is not positive."""
    for name, size in sizes.items():
        if size < 1:
            raise InvalidArgumentError(f"{name} is too small to make a graph of; give more")


def _check_divides(name: str, divisor: int, of: str, size: int) -> None:
    if size % divisor:
        raise InvalidArgumentError(f"{name}={divisor} does not divide {of}={size}; give one that does")
