"""Checks of ConfigProto and RunOptions, and the devices that a ConfigProto leaves to a session.

A field that would change values or placement and is not honoured is an error that names it, and so is a field that the
messages do not declare. `config_fields` says what a session does with each field.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from ....devices.given_cluster import as_cluster
from ....devices.visible import capped, filtered
from ....errors import InvalidArgumentError
from ....graph import ConfigProto
from ....graph.message_fields import set_fields
from ...running.call_checks import check_executor_type
from .config_fields import CONFIG_FIELDS, EXPANDED, RUN_FIELDS, ConfigField, Treatment
from .thread_pools import check_thread_pools

if TYPE_CHECKING:
    from pathlib import Path

    from ....devices.cluster import Cluster
    from ....graph import RunOptions


def own_copy(config: ConfigProto | None) -> ConfigProto:
    """A copy of `config`, which may be TensorFlow's message: later changes of that do not reach the session."""
    return ConfigProto() if config is None else ConfigProto.FromString(config.SerializeToString())


def usable_devices(devices: str | Path | Cluster, config: ConfigProto) -> Cluster:
    """The devices that a local session with `config` may use; `devices` as in `open_session`.

    Raises as `as_cluster`, `capped`, `filtered` and `check_config`.
    """
    cluster = filtered(capped(as_cluster(devices), config.device_count), config.device_filters)
    check_config(config, {device.type for device in cluster})
    return cluster


def check_config(config: ConfigProto, kinds: Collection[str], *, distributed: bool = False) -> None:
    """Raises InvalidArgumentError for the first field that a session on devices of these kinds refuses, and as
    `check_thread_pools`.

    Raises NotFoundError for an unknown executor. `distributed` says that the session is over several tasks.
    """
    for path, value in set_fields(config, EXPANDED):
        _check(f"ConfigProto.{path}", CONFIG_FIELDS[path], value, kinds, distributed=distributed)
    if not distributed:
        check_thread_pools(config)
    experimental = config.experimental
    check_executor_type(experimental.executor_type, "ConfigProto.experimental.executor_type")
    if experimental.session_metadata.version < 0 and not distributed:
        raise InvalidArgumentError(
            "Session version shouldn't be negative: ConfigProto.experimental.session_metadata.version is "
            f"{experimental.session_metadata.version}"
        )


def check_options(options: RunOptions, config: ConfigProto, *, distributed: bool = False) -> None:
    """Raises InvalidArgumentError for options of a step that a session with `config` refuses."""
    for path, value in set_fields(options, EXPANDED):
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
    field: ConfigField,
    value: Any,  # whatever type the field has
    kinds: Collection[str],
    *,
    distributed: bool,
) -> None:
    treatment, reason = field.treatment_by(distributed=distributed)
    applies = not field.kind or field.kind in kinds
    if treatment is Treatment.REFUSED and applies and field.refuses(value):
        raise InvalidArgumentError(f"{path} is refused: {reason}")
