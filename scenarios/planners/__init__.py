"""What a training run costs on a cluster: a closed form over the splits of a model, searched whole.

    step = PlannedStep(model, sequence_length=4096)
    plan = search(model, cluster, global_batch=512, sequence_length=4096)        all splits, the fastest that fit first
    estimate(model, split, cluster)                                              one split

step.py            PlannedStep: a model, a sequence length, and how a framework computes a layer
configurations.py  Configurations: splits in columns
machine.py         Machine: what of a cluster the closed form reads
estimates.py       Estimate: what is said of one split
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import load_lazily

if TYPE_CHECKING:
    from .estimates import Estimate as Estimate
    from .estimating import estimate as estimate
    from .searching.plan import TrainingPlan as TrainingPlan
    from .searching.search import search as search

load_lazily(__name__)
