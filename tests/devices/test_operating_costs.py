"""Prices, powers and failures of devices: what a cluster file says, and what a cluster makes of it."""

from __future__ import annotations

from math import inf

import pytest
from attrs import evolve
from hypothesis import given, strategies as st

from partita.devices import OperatingCosts, parse_cluster
from partita.errors import InvalidArgumentError

NUMBERS = st.none() | st.floats(1e-3, 1e9)
COSTS = st.builds(OperatingCosts, NUMBERS, NUMBERS, NUMBERS | st.just(inf))
H100 = '[[device]]\nspec = "H100-SXM"\n'
SAID = 'price = "2.50 $/h"\npower = "0.7 kW"\nmtbf = "50000 h"\n'
SAME = OperatingCosts(2.5, 700.0, 1.8e8)


@given(st.floats(0, 1e5), st.floats(1e-3, 1e6), st.floats(1.0, 1e12), st.integers(1, 64))
def test_equal_devices_cost_as_many_times_as_much(price: float, watts: float, mtbf_s: float, count: int) -> None:
    """And one of them fails as many times as often."""
    together = OperatingCosts.together([OperatingCosts(price, watts, mtbf_s)] * count)
    assert together.usd_per_hour == pytest.approx(count * price)
    assert together.watts == pytest.approx(count * watts)
    assert together.mtbf_s == pytest.approx(mtbf_s / count)


@given(st.lists(COSTS, min_size=1, max_size=5), st.lists(COSTS, max_size=5))
def test_one_unknown_number_is_unknown_of_all(costs: list[OperatingCosts], others: list[OperatingCosts]) -> None:
    """But not one of the others, which then add nothing."""
    together = OperatingCosts.together(costs, others)
    for name in ("usd_per_hour", "watts", "mtbf_s"):
        assert (getattr(together, name) is None) == any(getattr(one, name) is None for one in costs)
    assert together == OperatingCosts.together(costs, [one for one in others if one != OperatingCosts()])


def test_devices_that_never_fail_have_no_failure_together() -> None:
    """The rate of failures is 0."""
    assert OperatingCosts.together([OperatingCosts(mtbf_s=inf)] * 3).mtbf_s == inf


@pytest.mark.parametrize("text", [f"{H100}count = 8\n{SAID}", f'[[host]]\nmodel = "DGX-H100"\n{SAID}'])
def test_a_file_says_what_each_gpu_costs(text: str) -> None:
    """In a [[device]] as in a [[host]]; the CPU of the task says nothing, and adds nothing."""
    cluster = parse_cluster(text)
    cpu, *gpus = cluster.devices
    assert cpu.operating_costs == OperatingCosts()
    assert [gpu.operating_costs for gpu in gpus] == [SAME] * 8
    assert cluster.operating_costs == OperatingCosts(20.0, 5600.0, 2.25e7)


def test_a_cpu_of_a_file_may_cost_too() -> None:
    """Its price is added to that of the GPUs; alone it is not that of the cluster."""
    cpu = '[[device]]\nspec = "generic-cpu"\nprice = "1 USD/h"\n'
    assert parse_cluster(f"{cpu}{H100}{SAID}").operating_costs == OperatingCosts(3.5, 700.0, 1.8e8)
    assert parse_cluster(f"{cpu}{H100}").operating_costs == OperatingCosts()
    assert parse_cluster(cpu).operating_costs == OperatingCosts(usd_per_hour=1.0)


def test_costs_stay_when_a_cluster_changes() -> None:
    """After a restart, and without TF32; and devices that differ in costs alone are equal, as their times are."""
    cluster = parse_cluster(f"{H100}{SAID}")
    gpu = cluster.find("gpu:0")
    assert cluster.with_restarted(gpu.name).operating_costs == SAME
    assert cluster.without_tf32().operating_costs == SAME
    assert evolve(gpu, operating_costs=OperatingCosts()) == gpu


@pytest.mark.parametrize("table", [H100, '[[host]]\nmodel = "DGX-H100"\n'])
@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('price = "2.50"', "0: price: '2.50' is no price: it has no unit"),
        ("price = 2.5", "0: price: 2.5 is no price"),
        ('price = "2.50 EUR/h"', "0: price: '2.50 EUR/h' is no price: the unit 'EUR/h'"),
        ('power = "0 W"', "0: power: '0 W' is no power: it must be above 0"),
        ('mtbf = "5 years"', "0: mtbf: '5 years' is no time between failures: the unit 'years'"),
        ('prize = "2.50 $/h"', "0: unknown key 'prize'; did you mean 'price'?"),
    ],
)
def test_wrong_costs_are_refused(table: str, line: str, why: str) -> None:
    """With the file, the table and the key."""
    with pytest.raises(InvalidArgumentError) as error:
        parse_cluster(f"{table}{line}\n", name="my.toml")
    assert error.value.message.startswith("my.toml: ")
    assert why in error.value.message


@pytest.mark.parametrize("wrong", [{"usd_per_hour": -1.0}, {"watts": inf}, {"mtbf_s": 0.0}])
def test_impossible_numbers_are_refused(wrong: dict[str, float]) -> None:
    """By name."""
    with pytest.raises(InvalidArgumentError, match=next(iter(wrong))):
        OperatingCosts(**wrong)
