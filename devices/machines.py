"""A number of GPUs of a model as a text -> the catalog's machines that have them, joined by their network ports.

machines_of("H100-SXM:64")       8 DGX-H100, 64 GPUs
machines_of("h100_sxm:4")        one DGX-H100, of which 4 GPUs are used
machines_of("GB200:144")         2 racks GB200-NVL72
machines_of("GB200-tray:8")      2 trays: a machine may be named too
"""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import InvalidArgumentError
from .catalog import device_spec, tables_of_kind
from .catalog.hosts import HostModel, host_model
from .cluster import Cluster, check_count
from .cluster_file import parse_cluster


def machines_of(text: str) -> Cluster:
    """The cluster of a text "GPU:count": whole machines, or a part of one.

    A GPU goes by its name in the catalog or another name of it. Of several machines with such a GPU it is the largest
    whose GPUs are used up, or that has enough alone. Without a count it is one whole machine. Raises
    InvalidArgumentError, with the nearest counts, for one that no number of equal machines has; for a GPU that no
    machine of the catalog has, with those that one has. NotFoundError, with the nearest name, for an unknown GPU.
    """
    name, colon, count_text = (part.strip() for part in text.partition(":"))
    models = _with_gpu(name)
    count = _count(count_text, text) if colon else models[0].gpus
    check_count(count, repr(text))
    for model in models:
        if count <= model.gpus or count % model.gpus == 0:
            return _cluster(model, count)
    machines = " or ".join(f"{model.name} ({model.gpus} GPUs)" for model in models)
    near = sorted({count // model.gpus * model.gpus + more for model in models for more in (0, model.gpus)})
    below, above = max(size for size in near if size < count), min(size for size in near if size > count)
    raise InvalidArgumentError(
        f"{text!r}: {count} GPUs are no whole number of {machines}; give {name}:{below} or {name}:{above}"
    )


def _count(digits: str, text: str) -> int:
    if not digits.isdecimal() or int(digits) == 0:
        raise InvalidArgumentError(f"{text!r}: {digits!r} is no number of GPUs; write it as H100-SXM:64")
    return int(digits)


def _with_gpu(name: str) -> Sequence[HostModel]:
    """The machines of a name, or with GPUs of a name, the largest first."""
    models = [host_model(known) for known in tables_of_kind("host")]
    if named := [model for model in models if model.name == name]:
        return named
    gpus = sorted({model.gpu for model in models})
    spec = device_spec(name).name
    found = [model for model in models if model.gpu == spec]
    if not found:
        raise InvalidArgumentError(
            f"the catalog has no machine with {spec}; there is one with {', '.join(gpus)}, or write a cluster file"
        )
    return sorted(found, key=lambda model: (-model.gpus, model.name))


def _cluster(model: HostModel, count: int) -> Cluster:
    """Whole machines; of one that has more GPUs, the first ones with all its ports."""
    tasks = -(-count // model.gpus)
    whole = parse_cluster({"host": [{"model": model.name, "job": "worker", "tasks": tasks}]}, name=model.name)
    idle = {device.name for device in whole.ranked[count:]}
    return Cluster([device for device in whole if device.name not in idle], whole.topology.rules) if idle else whole
