"""From the error for a device that does not exist to one that also says which flag to add.

the graph requests gpu:3, the command has "cpu:1,gpu:2"     ... Add --devices "cpu:1,gpu:4", or --soft-placement ...
the graph requests a device of another task                 ... Add --soft-placement ..., or --cluster FILE.toml ...
the devices come from a cluster file                        ... Add a device for it to 'rig.toml', or ...
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from ...devices import Cluster
from ...devices.kinds import cluster_kinds
from ...errors import PartitaError, Reason
from ...graph.device_name import find_full_name
from .failure import configuring
from .request import Request, wanted_devices


@contextmanager
def placing(request: Request, cluster: Cluster, asked: Iterable[str], subject: str = "") -> Iterator[None]:
    """As `configuring`, and suggests an option when a device does not exist. `asked` are the requested devices."""

    def hint(error: PartitaError) -> str:
        if error.reason is not Reason.NO_DEVICE or error.device is None:
            return ""
        return _hint(error.device, request, cluster, asked)

    with configuring(subject, hint):
        yield


def _hint(missing: str, request: Request, cluster: Cluster, asked: Iterable[str]) -> str:
    name = find_full_name(missing)
    soft = "--soft-placement to use another one"
    if request.cluster is not None:
        return f" Add a device for it to {str(request.cluster)!r}, or {soft}."
    if name is None or name.type not in cluster_kinds() or _is_elsewhere(missing, cluster):
        return f" Add {soft}, or --cluster FILE.toml for one that has it."
    return f' Add --devices "{wanted_devices([*cluster.names, *asked, missing])}", or {soft}.'


def _is_elsewhere(missing: str, cluster: Cluster) -> bool:
    """Whether the device belongs to a task that `--devices` cannot make."""
    name, client = find_full_name(missing), find_full_name(cluster.client.name)
    if name is None or client is None:
        return True
    pairs = ((name.job, client.job), (name.replica, client.replica), (name.task, client.task))
    return any(requested not in (None, have) for requested, have in pairs)
