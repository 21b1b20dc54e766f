"""What a session must not overlook in its settings: the devices they leave it, and what they ask for in vain.

Flows in: the ConfigProto of a session, the RunOptions of a step. Flows out: devices, errors. Always holds: a field that
would change values or placement and is not honoured is an error that names it, and so is one that the messages do not
declare. What is done with which field is said in `config_fields`.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from ...devices.cluster_file import as_cluster
from ...devices.visible import capped, filtered
from ...errors import InvalidArgumentError, NotFoundError
from ...graph import ConfigProto
from ...graph.message_fields import set_fields
from .config_fields import CONFIG_FIELDS, OPENED, RUN_FIELDS, Field, Treatment

if TYPE_CHECKING:
    from pathlib import Path

    from ...devices.cluster import Cluster
    from ...graph import RunOptions

_EXECUTORS = ("", "DEFAULT", "SINGLE_THREADED_EXECUTOR")


def own_copy(config: ConfigProto | None) -> ConfigProto:
    """The settings of a session, which stay as they are when `config` is changed; it may be TensorFlow's message."""
    return ConfigProto() if config is None else ConfigProto.FromString(config.SerializeToString())


def usable_devices(devices: str | Path | Cluster, config: ConfigProto) -> Cluster:
    """The devices that a local session of that config may use, of `devices` as in `open_session`.

    Raises as `as_cluster`, `capped`, `filtered` and `check_config`.
    """
    cluster = filtered(capped(as_cluster(devices), config.device_count), config.device_filters)
    check_config(config, {device.type for device in cluster})
    return cluster


def check_config(config: ConfigProto, kinds: Collection[str], *, distributed: bool = False) -> None:
    """Raises InvalidArgumentError for the first field that a session on devices of these kinds refuses.

    Raises NotFoundError for an executor that does not exist. `distributed` says that the session is on several tasks.
    """
    for path, value in set_fields(config, OPENED):
        _check(f"ConfigProto.{path}", CONFIG_FIELDS[path], value, kinds, distributed=distributed)
    experimental = config.experimental
    if experimental.executor_type not in _EXECUTORS:
        raise NotFoundError(
            f"No executor factory registered for the given executor type: {experimental.executor_type}; "
            f"ConfigProto.experimental.executor_type is one of {', '.join(map(repr, _EXECUTORS))}"
        )
    if experimental.session_metadata.version < 0 and not distributed:
        raise InvalidArgumentError(
            "Session version shouldn't be negative: ConfigProto.experimental.session_metadata.version is "
            f"{experimental.session_metadata.version}"
        )


def check_options(options: RunOptions, config: ConfigProto, *, distributed: bool = False) -> None:
    """Raises InvalidArgumentError for options of a step that a session of that config does not allow."""
    for path, value in set_fields(options, OPENED):
        _check(f"RunOptions.{path}", RUN_FIELDS[path], value, (), distributed=distributed)
    if distributed:
        return
    if not -1 <= options.inter_op_thread_pool < max(len(config.session_inter_op_thread_pool), 1):
        raise InvalidArgumentError(f"Invalid inter_op_thread_pool: {options.inter_op_thread_pool}")
    if options.output_partition_graphs and config.experimental.disable_output_partition_graphs:
        raise InvalidArgumentError(
            "RunOptions.output_partition_graphs() is not supported when disable_output_partition_graphs is true."
        )


def _check(
    path: str,
    field: Field,
    value: Any,  # whatever type the field has
    kinds: Collection[str],
    *,
    distributed: bool,
) -> None:
    treatment, reason = field.treatment_by(distributed=distributed)
    matters = not field.kind or field.kind in kinds
    if treatment is Treatment.REFUSED and matters and field.refuses(value):
        raise InvalidArgumentError(f"{path} is refused: {reason}")
