"""Faster links, memories and rates: what changes, and by how much the step of a split is shorter."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from partita.devices import Cluster, machines_of, parse_cluster
from partita.errors import InvalidArgumentError
from partita.scenarios import LlamaModel, Split
from partita.scenarios.planners.machine import RATES, Machine
from partita.scenarios.planners.step import PlannedStep
from partita.scenarios.planners.what_if import changed, estimated, sensitivities

SMALL = PlannedStep(LlamaModel(4, 1024, 8, 4096, 32000), 2048)
SPLIT = Split(tp=2, pp=2, dp=4, microbatches=4, precision="bfloat16")
TWO_HOSTS = Machine.of(machines_of("H100-SXM:16"))
factors = st.floats(1.0, 8.0)


def near(values: dict[str, float]) -> Any:  # Any: what pytest compares with
    """All rates as they are but those given."""
    return pytest.approx({**dict.fromkeys(RATES, 1.0), **values})


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (["peak=2x"], {"products": 2}),
        (["memory.bandwidth=1.5x", "launch_overhead=0.5x"], {"memory": 1.5, "launches": 2}),
        (["link.bandwidth=2x"], {"inside": 2, "ports": 2}),
        (["NVLink4.bandwidth=3x"], {"inside": 3}),
        (["400 Gb InfiniBand.bandwidth=1.2x"], {"ports": 1.2}),
        (["nic.bandwidth=2x"], {"ports": 63 / 50}),
        (["nic.bandwidth=2x", "PCIe5 x16.bandwidth=2x"], {"ports": 2}),
        (["PCIe5 x16.bandwidth=2x"], {}),
        (["nic.bandwidth=.5x"], {"ports": 0.5}),
        ([], {}),
    ],
)
def test_changes_of_a_machine(changes: list[str], expected: dict[str, float]) -> None:
    """Beyond the next slowest link of a way a faster one gains nothing: 50 GB/s ports behind PCIe of 63 GB/s."""
    assert changed(TWO_HOSTS, changes).factors == near(expected)


def test_devices_that_share_a_port_have_a_part_of_its_rate() -> None:
    """Two GPUs on a port of 25 GB/s have 12.5 each, far below PCIe: twice the port is twice the rate."""
    machine = Machine.of(machines_of("L40S:16"))
    assert changed(machine, ["nic.bandwidth=2x"]).factors == near({"ports": 2})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("peak", "'peak' is no change; write it as link.bandwidth=2x"),
        ("peak=0x", "'peak=0x' is no change"),
        ("peak=twice", "is no change"),
        ("NVLink4.bandwith=2x", "did you mean 'NVLink4.bandwidth'"),
        ("memory=2x", "they have link.bandwidth, nic.bandwidth, NVLink4.bandwidth"),
    ],
)
def test_texts_that_are_no_change(text: str, words: str) -> None:
    """Say what would be one."""
    with pytest.raises(InvalidArgumentError, match=words):
        changed(TWO_HOSTS, [text])


def test_a_rate_is_changed_once() -> None:
    """A group and its member overlap."""
    with pytest.raises(InvalidArgumentError, match=r"NVLink4\.bandwidth is changed twice"):
        changed(TWO_HOSTS, ["link.bandwidth=2x", "NVLink4.bandwidth=3x"])


def test_one_host_has_no_ports() -> None:
    """And one GPU no links."""
    with pytest.raises(InvalidArgumentError, match=r"'nic\.bandwidth' is no rate of these machines"):
        changed(Machine.of(machines_of("H100-SXM:8")), ["nic.bandwidth=2x"])
    alone = Machine.of(Cluster(parse_cluster('[[device]]\nspec = "A100-80GB"').devices))
    assert set(sensitivities(SMALL, alone, Split(precision="bfloat16"))) == {"products", "memory", "launches"}


@settings(max_examples=20)
@given(st.fixed_dictionaries(dict.fromkeys(RATES, factors)))
def test_faster_rates_never_make_a_step_slower(by: dict[str, float]) -> None:
    """And all together by no more than the most."""
    before = estimated(SMALL, TWO_HOSTS, SPLIT).step_ms
    after = estimated(SMALL, TWO_HOSTS.faster(by), SPLIT).step_ms
    assert before / max(by.values()) * 0.999 <= after <= before * 1.001


@settings(max_examples=10)
@given(factors, factors)
def test_two_changes_multiply(first: float, second: float) -> None:
    """A machine may be made faster again."""
    twice = TWO_HOSTS.faster({"memory": first}).faster({"memory": second, "ports": first})
    assert twice.factors == near({"memory": first * second, "ports": first})


def test_sensitivities_are_shares_of_a_step() -> None:
    """Ten percent more of everything saves no more than a tenth over eleven, and each some of that."""
    saved = sensitivities(SMALL, TWO_HOSTS, SPLIT)
    assert set(saved) == set(RATES)
    assert all(percent >= 0 for percent in saved.values())
    assert 0 < sum(saved.values()) <= 100 * (1 - 1 / 1.1) * 1.05
    assert saved["products"] > 0
