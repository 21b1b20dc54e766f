"""The numbers of training on a machine whose rates are changed: times that rest on a rate are divided by its factor.

    numbers_on(PlanNumbers(), {"memory": 2.0, ...})      memory 1.6, optimizer 1.6, all others as they are

Measured times follow as well: a product, or a collective inside a host, takes its time by the factor.
"""

from __future__ import annotations

from collections.abc import Mapping

from .numbers import PlanNumbers


def numbers_on(by: PlanNumbers, factors: Mapping[str, float]) -> PlanNumbers:
    """The numbers by the factors of `Machine.factors`."""
    return by._replace(
        products=by.products / factors["products"],
        attention=by.attention / factors["products"],
        memory=by.memory * factors["memory"],
        optimizer=by.optimizer * factors["memory"],
        inside=by.inside / factors["inside"],
        network=by.network * factors["ports"],
        launch_ns=by.launch_ns / factors["launches"],
        microbatch_ns=by.microbatch_ns / factors["launches"],
    )
