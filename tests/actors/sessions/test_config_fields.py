"""Every field of ConfigProto and RunOptions is in the table: honoured, ignored, or refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from partita.actors import BlockingSession, RunOptions, open_session
from partita.actors.sessions.options.config_checks import check_config, check_options
from partita.actors.sessions.options.config_fields import CONFIG_FIELDS, EXPANDED, RUN_FIELDS, Treatment
from partita.errors import InvalidArgumentError, PartitaError
from partita.graph.message_fields import declared_fields, set_fields
from partita.graph.protos import ConfigProto, RewriterConfig
from tests.actors.sessions.test_config import FEED, SQUARES, square

UNKNOWN = b"\xc0\x3e\x01"
"""field 1000, a number: on the wire, and in no message"""


@pytest.mark.parametrize(("message", "table"), [(ConfigProto, CONFIG_FIELDS), (RunOptions, RUN_FIELDS)])
def test_the_table_has_every_field_and_no_other(message: Any, table: dict[str, Any]) -> None:
    assert sorted(declared_fields(message, EXPANDED)) == sorted(table)


def sample(field: Any) -> Any:
    """A value of a field of no message type, other than its default."""
    if field.enum_type is not None:
        return max((value.number for value in field.enum_type.values), key=lambda number: (number == 1, abs(number)))
    return {field.TYPE_BOOL: True, field.TYPE_STRING: "x"}.get(field.type, 1)


def with_one_field(message: Any, path: str) -> Any:
    """A message in which only that field is set, to a value that is not its default."""
    config = inner = message()
    *outer, name = path.split(".")
    for part in outer:
        inner = getattr(inner, part)
    field = inner.DESCRIPTOR.fields_by_name[name]
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        getattr(inner, name)["GPU"] = 1
    elif field.is_repeated:
        held = getattr(inner, name)
        held.add() if field.message_type is not None else held.append(sample(field))
    elif field.message_type is not None:
        getattr(inner, name).SetInParent()
    else:
        setattr(inner, name, sample(field))
    return config


async def test_every_field_alone_is_honoured_or_ignored_or_refused_by_name() -> None:
    """The values stay those of a session without settings."""
    odd = {
        "device_filters": "Invalid device filter: x",
        "experimental.executor_type": "ConfigProto.experimental.executor_type",
    }

    async def outcome(config: ConfigProto) -> str:
        try:
            async with open_session(square(), "cpu:2,gpu:1", config=config) as session:
                (y,) = await session.run("y", FEED)
                assert y.tolist() == SQUARES
        except PartitaError as error:
            return error.message
        return ""

    for path, field in CONFIG_FIELDS.items():
        message = await outcome(with_one_field(ConfigProto, path))
        if path in odd:
            assert odd[path] in message
        elif field.treatment is Treatment.REFUSED:
            assert message.startswith(f"ConfigProto.{path} is refused: ")
        elif path != "operation_timeout_in_ms":  # one millisecond may be too little
            assert message == "", path


async def test_every_option_of_a_step_alone_leaves_values_as_they_are() -> None:
    config = ConfigProto()
    config.session_inter_op_thread_pool.add()
    config.session_inter_op_thread_pool.add()
    async with open_session(square(), "cpu:2", config=config) as session:
        for path in RUN_FIELDS:
            options = with_one_field(RunOptions, path)
            if path != "timeout_in_ms":
                assert (await session.run("y", FEED, options=options))[0].tolist() == SQUARES


@pytest.mark.parametrize("path", ["", *sorted(EXPANDED - {"graph_options.rewrite_options.auto_parallel"})])
def test_a_field_that_no_message_declares_is_refused_by_its_number(path: str) -> None:
    config = ConfigProto()
    inner: Any = config
    for part in path.split(".") if path else ():
        inner = getattr(inner, part)
    inner.MergeFromString(UNKNOWN)
    with pytest.raises(InvalidArgumentError, match=rf"{path}.*has a field number 1000") as caught:
        BlockingSession(square(), "cpu:2", config=config)
    assert type(inner).__name__ in caught.value.message
    options = RunOptions()
    options.MergeFromString(UNKNOWN)
    with pytest.raises(InvalidArgumentError, match="RunOptions has a field number 1000"):
        check_options(options, ConfigProto())


def test_only_fields_that_are_set_are_checked() -> None:
    config = ConfigProto(operation_timeout_in_ms=7, allow_soft_placement=False)
    config.gpu_options.allow_growth = True
    config.rpc_options.MergeFromString(UNKNOWN)  # ignored as a whole
    fields = dict(set_fields(config, EXPANDED))
    assert list(fields) == ["gpu_options.allow_growth", "operation_timeout_in_ms", "rpc_options"]
    assert fields["operation_timeout_in_ms"] == 7


def test_fields_for_gpus_are_refused_only_where_there_are_gpus() -> None:
    config = ConfigProto()
    config.gpu_options.visible_device_list = "1,0"
    config.graph_options.rewrite_options.pin_to_host_optimization = RewriterConfig.ON
    check_config(config, {"CPU"})
    with pytest.raises(InvalidArgumentError, match=r"^ConfigProto\.gpu_options\.visible_device_list is refused"):
        check_config(config, {"CPU", "GPU"})
    config.device_count["GPU"] = 0
    with BlockingSession(square(), "cpu:2,gpu:2", config=config) as session:
        assert len(session.devices) == 2


def test_optimisers_that_change_no_value_may_be_named_and_others_not() -> None:
    config = ConfigProto()
    rewriting = config.graph_options.rewrite_options
    rewriting.debug_stripper = rewriting.auto_mixed_precision_cpu = RewriterConfig.OFF
    rewriting.layout_optimizer = RewriterConfig.AGGRESSIVE
    rewriting.optimizers.extend(["constfold", "layout"])
    check_config(config, {"CPU"})
    rewriting.optimizers.append("mine")
    with pytest.raises(InvalidArgumentError, match=r"graph_options\.rewrite_options\.optimizers is refused"):
        check_config(config, {"CPU"})
