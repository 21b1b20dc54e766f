"""Time of a collective among devices of a cluster.

    collective_time("all_reduce", ["gpu:0", "gpu:1"], 1 << 20, cluster)

Placement decides. Ranks of one host and one model of GPU whose curves were measured: those curves (`measured`). Ranks
of one host without curves: the fastest algorithm over their links (`algorithms`). Ranks of several hosts: inside each,
over all network ports at once, inside again (`hierarchy`); in a permute, as the slowest pair of neighbours. Which is
whose neighbour, the names of the devices decide; the order in which they are given does not matter.

Where links join the GPUs of a host in pairs, without a switch, curves and links are those of the largest set of rings
that share no link (`rings`); ranks that no ring visits go over PCIe, which nobody measured: within a factor of 3.

Without curves 80 % of times are taken to lie within a factor of 1.7 on either side: so many of the 840 rows of NCCL
curves of nine systems (2 to 8 GPUs of one host) do. Half of them take more than 1.38 times the time said here, and the
two assumed constants of `algorithms` were chosen beside these rows. Between hosts nothing was compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from ....errors import InvalidArgumentError
from ...cluster import Cluster
from ..costs.source import Provenance
from ..fits.calibration import Calibration
from .algorithms import PlannedCost, fastest
from .cost import CollectiveCost
from .group import HostGroup, RankGroup, group_of
from .hierarchy import HostPhase, host_phases, over_hosts
from .kinds import kind_named
from .measured import CollectiveModel, library_name

_FACTOR = 1.7  # of the interval without curves
_FACTOR_WITHOUT_RING = 3.0  # assumed, where links join some of the ranks and no ring visits all


def collective_time(
    kind: str,
    ranks: Sequence[str],
    size_bytes: int,
    cluster: Cluster,
    *,
    calibration: Calibration | None = None,
) -> CollectiveCost:
    """Time of one collective; `ranks` are names of devices, full or short, and `calibration` None the catalog's.

    The size is the output of an all-gather, the input of a reduce-scatter, else the buffer of a rank. Raises
    InvalidArgumentError for an unknown kind or device, a device twice, fewer than two ranks and a negative size.
    """
    kind = kind_named(kind)
    group = group_of(kind, ranks, cluster, calibration)
    if isinstance(size_bytes, bool) or not isinstance(size_bytes, int) or size_bytes < 0:
        raise InvalidArgumentError(f"{kind}: size_bytes = {size_bytes!r} must be a whole number of bytes, 0 or more")
    if len(group.by_host) == 1 and (model := group.hosts[0].model) is not None:
        return _from_curves(model, kind, group.hosts[0], size_bytes)
    if kind == "permute":
        planned = _to_neighbours(group, size_bytes)
    elif len(group.by_host) > 1:
        planned = over_hosts(phases_of(kind, group, size_bytes))
    else:
        planned = fastest(kind, group.hosts[0].ranks, size_bytes, group.hosts[0].way)
    return _wide(planned, "roofline", min((host.rings for host in group.hosts if host.rings is not None), default=None))


def _from_curves(model: CollectiveModel, kind: str, host: HostGroup, size_bytes: int) -> CollectiveCost:
    time_ns, low_ns, high_ns, provenance = model.predict(kind, host.ranks, np.array([size_bytes]), rings=host.rings)
    time, low, high = (round(float(column[0])) for column in (time_ns, low_ns, high_ns))
    library = library_name(model.libraries.of(kind, host.ranks))
    return CollectiveCost(time, low, high, "measured", "measured", provenance, host.rings, library)


def _to_neighbours(group: RankGroup, size_bytes: int) -> PlannedCost:
    """All ranks send to the next one at once: as the slowest way says, or a host's curves if that takes longer."""
    measured = [host for host in group.hosts if host.model is not None and host.rings is None]
    over_links = fastest("permute", 2, size_bytes, group.way_to_neighbour)
    return max(over_links, _slowest(measured, "permute", 2, size_bytes)) if measured else over_links


def phases_of(kind: str, group: RankGroup, size_bytes: float) -> list[HostPhase]:
    """The phases of a collective of several hosts."""
    return host_phases(kind, group.per_host, size_bytes, group.ports, partial(_slowest, group.hosts))


def _slowest(hosts: Sequence[HostGroup], kind: str, _ranks: int, size_bytes: float) -> PlannedCost:
    """The slowest host's part of a collective, of those with several ranks; each has its own number of them."""
    costs = []
    for host in (host for host in hosts if host.ranks > 1):
        if host.model is None:
            costs.append(fastest(kind, host.ranks, size_bytes, host.way))
        else:
            said = host.model.predict(kind, host.ranks, np.array([size_bytes]), rings=host.rings)
            time_ns = float(said.time_ns[0])
            costs.append(PlannedCost(time_ns, "measured", "measured"))
    return max(costs)


def _wide(planned: PlannedCost, provenance: Provenance, rings: int | None) -> CollectiveCost:
    time_ns, factor = planned.time_ns, _FACTOR_WITHOUT_RING if rings == 0 else _FACTOR
    return CollectiveCost(
        round(time_ns),
        round(time_ns / factor),
        round(time_ns * factor),
        planned.algorithm,
        planned.protocol,
        provenance,
        rings,
    )
