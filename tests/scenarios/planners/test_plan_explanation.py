"""What is said of one plan: bars that add up, the fullest GPU, how sure it is, the simulation, and money."""

from __future__ import annotations

from partita.devices import machines_of
from partita.scenarios import Split
from partita.scenarios.planners.estimates import Estimate
from partita.scenarios.planners.machine import Machine
from partita.scenarios.planners.plan_explanation import compared, explained, in_sentences, money
from tests.scenarios.commands.planning.plans import made

MACHINE = Machine.of(machines_of("A100-80GB:8"))


def lines(plan: Estimate) -> list[str]:
    """All lines on a plan."""
    return list(explained(plan, MACHINE))


def test_time_and_memory_are_bars_the_longest_first() -> None:
    """Parts that are nothing have none."""
    assert lines(made()) == [
        "plan 1: dp=8,precision=bfloat16",
        "where the time goes: 100.0 ms",
        "  matrix products                   60.00 ms  60.0 %  ##############",
        "  attention                         30.00 ms  30.0 %  #######",
        "  data-parallel communication       10.00 ms  10.0 %  ##",
        "memory of the fullest GPU: 20.0 of 40.0 GiB reserved",
        "  activations kept for backward       15.00 GiB  75.0 %  ##################",
        "  optimizer state                      5.00 GiB  25.0 %  ######",
        "how sure",
        "  80 % of steps take 90 to 112 ms; allocated are 19.0 GiB, 18.0 to 20.5",
        "  fitted: training steps on A100-80GB were measured",
    ]


def test_the_fullest_of_several_stages_is_named() -> None:
    """Counted as pipeline ranks are, from 0."""
    split = Split(pp=4, microbatches=8, precision="bfloat16")
    assert "memory of the fullest GPU, pipeline rank 3 of 0 to 3: 20.0 of 40.0 GiB reserved" in lines(
        made(split=split, fullest_stage=3)
    )


def test_what_no_step_was_measured_for_is_said() -> None:
    """The GPU is named."""
    assert any(
        line.startswith("  transferred: no training steps on A100-80GB were measured")
        for line in lines(made(provenance="transferred"))
    )


def test_both_times_are_compared() -> None:
    """With their difference, and whether the interval holds it."""
    assert compared(made(simulated_step_ms=95.0)) == (
        "plan 1 simulated: 95.0 ms; the closed form says 100.0 ms, +5.3 %; the simulation is inside its interval"
    )
    assert compared(made(2, simulated_step_ms=125.0)).endswith("-20.0 %; the simulation is outside its interval")
    assert compared(made(simulated_step_ms=95.0)) in lines(made(simulated_step_ms=95.0))


def test_money_is_what_is_known() -> None:
    """Nothing where no price is."""
    assert list(money(made())) == []
    assert list(money(made(usd_per_step=0.25))) == ["cost: $0.250 a step"]
    whole = made(usd_per_step=0.25, joules_per_step=3.6e6, usd_per_run=1e4, days=2.5, goodput=0.987)
    assert list(money(whole)) == [
        "cost: $0.250 a step, 1.000 kWh a step, 2.50 days for the run, $10,000 for the run, "
        "98.7 % of its time is not lost to failures"
    ]


def test_sentences_leave_the_bars_out() -> None:
    """The largest parts of the time are named; how sure it is and what it costs are said as beside the bars."""
    assert list(in_sentences(made(usd_per_step=0.25), MACHINE)) == [
        "plan 1: dp=8,precision=bfloat16",
        "its step takes 100.0 ms: matrix products 60.0 %, attention 30.0 %, data-parallel communication 10.0 %",
        "80 % of steps take 90 to 112 ms; allocated are 19.0 GiB, 18.0 to 20.5",
        "fitted: training steps on A100-80GB were measured",
        "cost: $0.250 a step",
    ]
