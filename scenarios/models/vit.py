"""Vision transformers: an image cut in patches, a class token, LayerNorm before each branch, a head for classes."""

from __future__ import annotations

from collections.abc import Sized
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from ...errors import InvalidArgumentError
from .description import check_sizes
from .equal_heads import EqualHeads
from .fields import NO_DROPOUT, ConfigFields, ConfigRules, read_fields
from .nearest import nearest_divisors, or_text

_CLASSES = 2  # transformers', for a file that lacks both id2label and num_labels

RULES = (
    ConfigRules(
        "vit",
        sizes=("num_hidden_layers", "hidden_size", "num_attention_heads", "intermediate_size"),
        defaults=(
            {"image_size": 224, "patch_size": 16, "num_channels": 3, "layer_norm_eps": 1e-12}
            | {"id2label": None, "num_labels": None}
        ),
        same={"hidden_act": ("gelu",), "qkv_bias": (True,)},
        left_out=dict.fromkeys(("hidden_dropout_prob", "attention_probs_dropout_prob"), NO_DROPOUT),
        without_effect=frozenset({"encoder_stride", "pooler_output_size", "pooler_act"}),
        architectures=("ViTForImageClassification",),
    ),
)


@dataclass(frozen=True, slots=True)
class VitModel(EqualHeads):
    """A classifier of images as ViT's (Dosovitskiy et al., 2020).

    layers, hidden, heads      blocks, width, attention heads of width hidden / heads
    intermediate               units of the feed-forward layers
    image, patch, channels     side of the square image, side of a patch, channels
    classes                    outputs of the head, which reads the class token behind the last norm
    epsilon                    of LayerNorm

    GELU is the exact one. Raises InvalidArgumentError for a size that is not positive, for heads that do not divide the
    width and for patches that do not fill the image.
    """

    layers: int
    hidden: int
    heads: int
    intermediate: int
    image: int = 224
    patch: int = 16
    channels: int = 3
    classes: int = 1000
    epsilon: float = 1e-12
    left_out: tuple[str, ...] = field(default=(), compare=False, kw_only=True)

    def __post_init__(self) -> None:
        check_sizes(self, layers=self.layers, hidden=self.hidden, heads=self.heads, intermediate=self.intermediate)
        check_sizes(self, image=self.image, patch=self.patch, channels=self.channels, classes=self.classes)
        self.check_heads()
        if self.image % self.patch:
            near = or_text(nearest_divisors(self.patch, self.image))
            raise InvalidArgumentError(
                f"VitModel: patch={self.patch} does not divide image={self.image}; give patch={near}"
            )

    @classmethod
    def from_config(cls, path: Path | str) -> Self:
        """The model of a config.json with `model_type` "vit"; raises as `ModelDescription.from_config`."""
        found = read_fields(path, RULES)
        return cls(
            layers=found.size("num_hidden_layers"),
            hidden=found.size("hidden_size"),
            heads=found.size("num_attention_heads"),
            intermediate=found.size("intermediate_size"),
            image=_side(found, "image_size"),
            patch=_side(found, "patch_size"),
            channels=found.size("num_channels"),
            classes=_classes(found),
            epsilon=found.number("layer_norm_eps"),
            left_out=found.left_out,
        )

    @property
    def tokens(self) -> int:
        """Rows of an image: the class token and the patches."""
        return 1 + (self.image // self.patch) ** 2

    @property
    def parameters(self) -> int:
        """(p^2 c + 1) h + h + n h + L (4 h^2 + 2 h i + 9 h + i) + 2 h + (h + 1) classes.

        Patches with a bias, the class token, a position for each of n rows, blocks as GPT's, the last norm, the head.
        """
        h = self.hidden
        patches = (self.patch * self.patch * self.channels + 1) * h
        return patches + (1 + self.tokens) * h + self.layers * self.block_parameters + 2 * h + (h + 1) * self.classes

    def rows_of(self, sequence_length: int) -> int:
        """`tokens`, whatever the length: an image has so many rows."""
        return self.tokens


def _side(found: ConfigFields, name: str) -> int:
    """The side of a square: a number, or a list of two equal ones."""
    value = found.values[name]
    sides = value if isinstance(value, list) else [value, value]
    if len(sides) != 2 or sides[0] != sides[1] or not isinstance(sides[0], int) or sides[0] < 1:
        raise found.wrong(name, "the side of a square: a number, or two equal ones")
    return sides[0]


def _classes(found: ConfigFields) -> int:
    labels = found.values["id2label"]
    if isinstance(labels, Sized) and len(labels):
        return len(labels)
    return found.count("num_labels") or _CLASSES
