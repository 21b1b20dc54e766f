"""The forward pass of one rank for one micro-batch, by the family of the model.

end = forward(RankNetwork(program, parameters, split, sizes), model)
losses = end.losses()          the sum of the losses of the rank's tokens, and how many have a label
logits = end.logits()          [rows, classes], where there are no labels
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from ....errors import InvalidArgumentError
from ....graph.builder.handles import Tensor
from ...models.bert import BertModel
from ...models.dlrm import DlrmModel
from ...models.gpt import GptModel
from ...models.llama import LlamaModel
from ...models.moe import MoeModel
from ...models.vit import VitModel
from .bert import bert
from .dlrm import SampleForward, dlrm
from .gpt import gpt
from .llama import llama
from .loss import ClassLogits, TokenLosses, token_losses, whole_logits
from .moe import moe
from .network import RankNetwork
from .sequence import input_rows
from .vit import vit

# Any: each function takes the class of models that it stands beside.
FAMILIES: dict[type, Callable[[RankNetwork, Any], ClassLogits]] = {
    GptModel: gpt,
    LlamaModel: llama,
    MoeModel: moe,
    BertModel: bert,
    VitModel: vit,
}
"""what makes the logits of a model, by its class"""


@dataclass(frozen=True, slots=True)
class RankForward:
    """The end of a forward pass, still open."""

    network: RankNetwork
    classes: ClassLogits
    has_one_label: bool
    """whether a sequence has one label (an image), in place of one for each token"""

    def losses(self) -> TokenLosses:
        """The losses of "labels", int32 [batch, length] or, of images, [batch]."""
        network = self.network
        labels = network.labels(is_one=self.has_one_label)
        with network.last("loss"):
            rows = labels if self.has_one_label else input_rows(network, labels)
            return token_losses(network, self.classes, rows)

    def logits(self) -> Tensor:
        """The logits of all classes; of token p of sequence n in row p * batch + n."""
        with self.network.last("logits"):
            return whole_logits(self.network, self.classes)


ForwardEnd: TypeAlias = RankForward | SampleForward
"""the end of a forward pass: `losses()` of its labels, or `logits()`"""


def forward(network: RankNetwork, model: object) -> ForwardEnd:
    """Adds a model to the graph; InvalidArgumentError for a model of a class without a builder."""
    if isinstance(model, DlrmModel):
        return dlrm(network, model)
    build = FAMILIES.get(type(model))
    if build is None:
        known = ", ".join(family.__name__ for family in (*FAMILIES, DlrmModel))
        raise InvalidArgumentError(f"{type(model).__name__} has no builder of transformers; use one of {known}")
    return RankForward(network, build(network, model), isinstance(model, VitModel))
