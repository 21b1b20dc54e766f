"""What anybody could say of a training run without a planner.

    constant MFU    operations / (GPUs * peak * share), with 1 + (pp - 1) / (interleave * micro-batches) for the
                    bubble; the share is fitted to the rows at hand
    half the peak   the same where nothing is fitted, with a share of one half
    parameters      16-bit parameters, gradients and 12 bytes of optimizer state of a rank's share of the parameters
    34 bytes        34 bytes a row and unit of each layer in flight (Korthikanti et al., 2022, without attention)

Operations are 6 N + 12 L h s a token, and a third more where whole layers are computed again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ....devices.timing.fits.products import bf16_peak
from ....graph.arrays import Floats
from ...models.moe import MoeModel
from .predicted_runs import GIB
from .training_row import TrainingRow

CONSTANT, HALF = "constant MFU", "half the peak"
PARAMETERS, ROWS = "parameters", "34 bytes"
_PARAMETER_BYTES, _OPTIMIZER_BYTES, _ROW_BYTES = 2, 12, 34


def peak_ms(rows: Sequence[TrainingRow]) -> Floats:
    """ms of a step at the peak rate, with the bubble of its pipeline; of the first split where there are several."""
    return np.array([_peak_ms(row) for row in rows], dtype=np.float64)


def _peak_ms(row: TrainingRow) -> float:
    split, length = row.split, row.step.sequence_length
    operations = row.step.model.flops_per_token(length) * length * row.global_batch
    again = 4 / 3 if split.recompute == "full" else 1.0
    bubble = 1 + (split.pp - 1) / (split.interleave * split.microbatches)
    return 1e3 * operations * again * bubble / (row.gpus * bf16_peak(row.machine.spec))


def fitted_share(rows: Sequence[TrainingRow]) -> float:
    """The share of the peak that makes the mean of |predicted / measured - 1| least; NaN without measurements.

    The inverse of the share is the weighted median of measured / peak with the weights peak / measured.
    """
    shares = peak_ms(rows) / np.array([row.step_ms for row in rows], dtype=np.float64)
    shares = np.sort(shares[np.isfinite(shares)])[::-1]
    if not len(shares):
        return np.nan
    return float(shares[np.searchsorted(np.cumsum(shares), shares.sum() / 2)])


def null_gib(rows: Sequence[TrainingRow]) -> Mapping[str, Mapping[str, Floats]]:
    """GiB by null model and quantity."""
    state = np.array([_state_gib(row) for row in rows], dtype=np.float64)
    activations = np.array([_activations_gib(row) for row in rows], dtype=np.float64)
    return {PARAMETERS: {"allocated_gib": state, "state_gib": state}, ROWS: {"activations_gib": activations}}


def _state_gib(row: TrainingRow) -> float:
    split, model = row.split, row.step.model
    routed = 0.0
    if isinstance(model, MoeModel):
        routed = (model.parameters - model.active_parameters) * model.experts / max(1, model.experts - model.topk)
    own = ((model.parameters - routed) / split.tp + routed / split.ep) / split.pp
    sharded = _OPTIMIZER_BYTES / (split.dp * split.cp if split.zero else 1)
    return own * (_PARAMETER_BYTES + row.step.gradient_bytes + sharded) / GIB


def _activations_gib(row: TrainingRow) -> float:
    split, model = row.split, row.step.model
    values = split.microbatch * row.step.sequence_length / split.cp * model.attention_width
    in_flight = min(split.pp, split.microbatches) * model.layers / split.pp
    return values * in_flight * _ROW_BYTES / (split.tp if split.sequence_parallel else 1) / GIB
