"""The family of a Hugging Face config.json, by its `model_type`."""

from __future__ import annotations

from pathlib import Path

from ...errors import InvalidArgumentError
from ...graph.suggestions import meant
from . import bert, dlrm, gpt, llama, moe, moe_rules, vit
from .description import ModelDescription
from .fields import ConfigRules, config_values

RULES: tuple[tuple[type[ModelDescription], tuple[ConfigRules, ...]], ...] = (
    (gpt.GptModel, gpt.RULES),
    (llama.LlamaModel, llama.RULES),
    (moe.MoeModel, moe_rules.RULES),
    (bert.BertModel, bert.RULES),
    (vit.VitModel, vit.RULES),
    (dlrm.DlrmModel, dlrm.RULES),
)
"""the families with the fields of config.json that they know"""
FAMILIES = {rules.model_type: family for family, of_family in RULES for rules in of_family}
"""by `model_type` the class of its models"""


def model_from_config(path: Path | str) -> ModelDescription:
    """The model of a Hugging Face config.json, or of the folder that holds one, of whatever family it is.

    Raises InvalidArgumentError for a `model_type` that no family has, and as `from_config` of the family.
    """
    file, values = config_values(path)
    model_type = values.get("model_type")
    family = FAMILIES.get(model_type) if isinstance(model_type, str) else None
    if family is None:
        known = ", ".join(FAMILIES)
        raise InvalidArgumentError(
            f"{file}: model_type={model_type!r} is of no family; known are {known}{meant(str(model_type), FAMILIES)}"
        )
    return family.from_config(file)
