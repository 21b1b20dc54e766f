"""Where the times of ops come from, by the flags --costs, --calibration and --no-tf32.

--costs roofline          rooflines over the numbers of the specs
--costs fitted            what was fitted to measurements; --calibration FILE adds fits to those of the catalog
--costs grappler          what TensorFlow's cost estimator says
--costs measured:FILE     the times of a trace of a real step; where it has none, those without the flag
"""

from __future__ import annotations

from collections.abc import Mapping

from ...devices import (
    Calibration,
    Cluster,
    CostSource,
    FittedSource,
    GrapplerSource,
    RooflineSource,
    load_calibration,
)
from ...graph import Graph
from .failure import ConfigurationError, configuring
from .request import MEASURED, Request

KINDS = ("roofline", "grappler", "fitted", f"{MEASURED}FILE")


def check_costs(request: Request) -> None:
    """ConfigurationError for a value of --costs that is none, and for a calibration that it does not use."""
    costs = request.costs
    if costs is not None and costs not in KINDS[:-1] and request.measured is None:
        raise ConfigurationError(f"--costs {costs!r} is none of {', '.join(KINDS)}")
    if request.measured == "":
        raise ConfigurationError("--costs measured: names no file; write --costs measured:trace.pb")
    if request.calibrations and costs in ("roofline", "grappler"):
        raise ConfigurationError(f"--calibration: --costs {costs} uses no fits; leave --costs out, or write fitted")


def cost_source_of(request: Request, parts: Mapping[str, Graph], cluster: Cluster) -> CostSource:
    """The source that the flags ask for; `parts` are the graphs that a trace of `measured:FILE` is of.

    Raises ConfigurationError for files that cannot be used.
    """
    if request.measured is None:
        return _source(request.costs or "fitted", request)
    from ...devices.timing.costs.first_known import FirstKnown
    from ...devices.timing.costs.measured import MeasuredSource

    with configuring("--costs"):
        measured = MeasuredSource.from_step_stats(request.measured, parts, cluster)
    return FirstKnown(measured, _source("fitted", request))


def _source(kind: str, request: Request) -> CostSource:
    """A source that needs no graphs."""
    if kind == "roofline":
        return RooflineSource()
    if kind == "grappler":
        return GrapplerSource()
    calibration = Calibration.of_catalog()
    with configuring("--calibration"):
        for path in reversed(request.calibrations):
            calibration = load_calibration(path).over(calibration)
    return FittedSource(calibration)
