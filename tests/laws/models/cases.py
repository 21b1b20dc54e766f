"""Draws small models of every family and splits of them: at most 2 layers, or one a stage; width 16, 8 devices."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np

from partita.errors import InvalidArgumentError, UnimplementedError
from partita.graph.dtypes import Array
from partita.scenarios.models.bert import BertModel
from partita.scenarios.models.description import ModelDescription
from partita.scenarios.models.dlrm import DlrmModel
from partita.scenarios.models.gpt import GptModel
from partita.scenarios.models.llama import LlamaModel
from partita.scenarios.models.moe import LatentAttention, MoeModel
from partita.scenarios.models.rope import Rope
from partita.scenarios.models.split import Split
from partita.scenarios.models.vit import VitModel
from partita.scenarios.workloads.transformers.optimizers import OptimizerSettings

BATCH, SEQUENCE, VOCABULARY = 8, 8, 29
HALF = ("bfloat16", "float16")
FAMILIES = ("gpt", "llama", "moe", "latent", "bert", "vit", "dlrm")


@dataclass(frozen=True)
class ModelCase:
    """A model, a split, and what its step is made of."""

    model: ModelDescription
    split: Split
    optimizer: OptimizerSettings
    fused: bool
    leaves_out: bool
    """whether some labels are negative"""

    @property
    def one_device(self) -> ModelCase:
        """The same step on one device, all of the batch at once."""
        return replace(self, split=Split(microbatch=BATCH, precision=self.split.precision))

    def inputs(self, step: int) -> dict[str, Array]:
        """What the step with that number is fed, for the global batch."""
        rng = np.random.default_rng(step)
        model, limit = self.model, VOCABULARY
        if isinstance(model, DlrmModel):
            dense = rng.normal(size=(BATCH, model.dense_features)).astype(np.float32)
            indices = np.stack([rng.integers(0, rows, BATCH) for rows in model.tables], 1).astype(np.int32)
            return {"dense": dense, "indices": indices, "labels": self._labels(rng, (BATCH,), 2)}
        if isinstance(model, VitModel):
            images = rng.normal(size=(BATCH, model.image, model.image, model.channels)).astype(np.float32)
            return {"images": images, "labels": self._labels(rng, (BATCH,), model.classes)}
        tokens = rng.integers(0, limit, (BATCH, SEQUENCE)).astype(np.int32)
        return {"tokens": tokens, "labels": self._labels(rng, (BATCH, SEQUENCE), limit)}

    def _labels(self, rng: np.random.Generator, shape: tuple[int, ...], classes: int) -> Array:
        labels = rng.integers(0, classes, shape).astype(np.int32)
        if self.leaves_out:
            labels[rng.random(shape) < 0.3] = -1
        return labels


def drawn(seed: int, family: str = "") -> ModelCase:
    """The case of a seed, of a family by turns unless it is named; the same every time."""
    draw = Random(seed)
    family = family or FAMILIES[seed % len(FAMILIES)]
    while True:
        model, split = _model(draw, family), _split(draw)
        if split.interleave > 1 and isinstance(model, (BertModel, GptModel, LlamaModel, MoeModel, VitModel)):
            model = replace(model, layers=split.pp * split.interleave)  # there are no stages without a layer
        if isinstance(model, MoeModel) and split.precision in HALF:
            # A rounding may send a token to another expert, and the loss jumps: here all are chosen.
            model = replace(model, topk=model.experts, groups_kept=model.groups)
        if family == "dlrm" and split.recompute == "selective":
            continue  # refused: there is no attention
        if model.layers > 2 and split.precision == "float16":
            continue  # gradients of so many layers overflow by the scale of losses, on one rank with micro-batches too
        try:
            split.check(model, SEQUENCE, 8)
        except (InvalidArgumentError, UnimplementedError):
            continue
        optimizer = OptimizerSettings(
            kind=draw.choice(("adamw", "adam", "sgd")),
            learning_rate=0.01 if split.precision in HALF else draw.choice((0.01, 0.05)),
            epsilon=1e-3,  # a gradient that is all rounding must not become a step of the learning rate
            clip_norm=draw.choice((None, 0.1, 10.0)),
        )
        return ModelCase(model, split, optimizer, fused=draw.random() < 0.5, leaves_out=draw.random() < 0.4)


def _split(draw: Random) -> Split:
    while True:
        dp, tp, pp, cp = (draw.choice((1, 1, 2, 2, 4)) for _ in range(4))
        interleave = draw.choice((1, 1, 1, 2)) if pp > 1 else 1
        microbatch = draw.choice((1, 1, 2, 4))
        rows = dp * microbatch
        if dp * tp * pp * cp > 8 or rows > BATCH:
            continue
        zero = draw.choice((0, 0, 1, 2, 3))
        settings: dict[str, Any] = {
            "cp_kind": draw.choice(("heads", "ring")),
            "ep": draw.choice([n for n in (1, 2, 4) if dp % n == 0]),
            "schedule": draw.choice(("1f1b", "gpipe")) if interleave == 1 else "interleaved",
            "sequence_parallel": draw.random() < 0.5,
            "zero": min(zero, 2) if pp > 1 else zero,  # stage 3 is refused with a pipeline
            "zero_group": draw.choice([None, *(n for n in (1, 2) if dp % n == 0)]) if zero else None,
            "recompute": draw.choice(("none", "none", "selective", "full", "products")),
            "overlap": draw.choice(((), ("dp",), ("tp", "cp"), ("tp", "dp", "pp", "cp", "ep"))),
            "precision": draw.choice(("float64", "float64", "float64", "float32", "bfloat16", "float16")),
        }
        try:
            return Split(
                dp=dp,
                tp=tp,
                pp=pp,
                cp=cp,
                microbatch=microbatch,
                microbatches=BATCH // rows,
                interleave=interleave,
                **settings,
            )
        except InvalidArgumentError:
            continue


def _model(draw: Random, family: str) -> ModelDescription:
    heads = draw.choice((2, 4))
    hidden, layers, pad = heads * draw.choice((2, 4)), draw.choice((1, 2, 2)), draw.choice((1, 4))
    if family == "gpt":
        return GptModel(layers, hidden, heads, VOCABULARY, SEQUENCE, tied=draw.random() < 0.7, pad_vocabulary=pad)
    if family == "bert":
        return BertModel(layers, hidden, heads, 12, VOCABULARY, SEQUENCE, pad_vocabulary=pad)
    if family == "vit":
        return VitModel(layers, hidden, heads, 12, image=4, patch=2, channels=2, classes=5)
    if family == "dlrm":
        return DlrmModel(3, tuple(draw.choice((4, 7)) for _ in range(4)), 4, (6, 4), (5, 1))
    shared: dict[str, Any] = {
        "layers": layers,
        "hidden": hidden,
        "heads": heads,
        "intermediate": 12,
        "vocabulary": VOCABULARY,
        "pad_vocabulary": pad,
        "tied": draw.random() < 0.3,
    }
    if family == "latent":
        latent = LatentAttention(kv_rank=6, q_rank=draw.choice((0, 4)), nope_size=4, rope_size=2, value_size=6)
        return MoeModel(
            **shared,
            experts=4,
            topk=2,
            expert_intermediate=4,
            shared_intermediate=draw.choice((0, 4)),
            dense_layers=layers - 1,
            router=draw.choice(("softmax", "sigmoid")),
            groups=2,
            groups_kept=draw.choice((1, 2)),
            weight_scale=1.5,
            latent=latent,
        )
    shared["kv_heads"] = draw.choice((1, 2, heads))
    shared["rope"] = Rope(theta=100.0)
    if family == "moe":
        return MoeModel(**shared, experts=4, topk=2, expert_intermediate=4)
    return LlamaModel(**shared, qkv_bias=draw.random() < 0.4, window=draw.choice((0, 0, 3)))
