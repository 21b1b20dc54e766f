"""What the flags of `partita plan` name: a model, machines, and fits.

--layers 32 --hidden 4096 ...            LlamaModel(layers=32, hidden=4096, ...)
--gpus H100-SXM:64                       8 machines of 8, as the catalog has them
--cluster rack.toml, 16 of its GPUs      the first two of its machines
"""

from __future__ import annotations

from ....devices import Calibration, load_calibration
from ...models.description import ModelDescription
from ...models.gpt import GptModel
from ...models.llama import LlamaModel
from ...models.moe import MoeModel
from ...models.sizes import model_of_sizes, sizes_of
from ...planned_models import SIZES
from ..failure import ConfigurationError, configuring
from .flags import PlanFlags, size_flag

_FAMILIES: dict[str, type[ModelDescription]] = {"gpt": GptModel, "llama": LlamaModel, "moe": MoeModel}


def given_model(flags: PlanFlags) -> ModelDescription:
    """The model of a config.json or of sizes; ConfigurationError for sizes that are missing or of another family."""
    family = _FAMILIES[flags.family]
    if flags.config is not None:
        with configuring("--config"):
            return family.from_config(flags.config)
    known = {name: needed for name, needed in sizes_of(family).items() if name in SIZES}
    for name in flags.sizes:
        if name not in known:
            raise ConfigurationError(f"{size_flag(name)}: a {flags.family} has no such size; leave it out")
    missing = [size_flag(name) for name, needed in known.items() if needed and name not in flags.sizes]
    if missing:
        raise ConfigurationError(f"the sizes of the model are missing; add --config FILE, or {' N '.join(missing)} N")
    with configuring():
        return model_of_sizes(family, flags.sizes)


def given_calibration(flags: PlanFlags) -> Calibration | None:
    """The fits of files, over those of the catalog; None where no file is given."""
    if not flags.calibrations:
        return None
    calibration = Calibration.of_catalog()
    with configuring("--calibration"):
        for path in reversed(flags.calibrations):
            calibration = load_calibration(path).over(calibration)
    return calibration
