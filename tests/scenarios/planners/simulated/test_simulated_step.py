"""The simulated step of a split: close to the closed form, and monotone in the numbers that it is given."""

from __future__ import annotations

import pytest

from partita.devices import parse_cluster
from partita.devices.cluster import Cluster
from partita.errors import UnimplementedError
from partita.scenarios import GptModel, LlamaModel, MoeModel, Split
from partita.scenarios.models.description import ModelDescription
from partita.scenarios.planners.configurations import Configurations
from partita.scenarios.planners.machine import Machine
from partita.scenarios.planners.numbers import PlanNumbers
from partita.scenarios.planners.simulated.step import simulated_step_ms
from partita.scenarios.planners.step import PlannedStep
from partita.scenarios.planners.times.assembly import assembled
from partita.scenarios.planners.times.terms import step_terms

GPT = GptModel(layers=4, hidden=4096, heads=32, positions=2048, tied=False)
LLAMA = LlamaModel(layers=4, hidden=4096, heads=32, kv_heads=8, intermediate=14336, vocabulary=32000)
MIXTURE = MoeModel(
    layers=4, hidden=4096, heads=32, kv_heads=8, intermediate=14336, vocabulary=32000, experts=8, topk=2,
    expert_intermediate=14336,
)  # fmt: skip
BY = PlanNumbers(launch_ns=2_000.0, microbatch_ns=1e5, step_ns=1e5)
TINY = GptModel(layers=2, hidden=256, heads=4, vocabulary=512, positions=64, pad_vocabulary=64)


def cluster(hosts: int) -> Cluster:
    """Machines of eight A100s."""
    return parse_cluster(f'[[host]]\nmodel = "DGX-A100"\njob = "worker"\ntasks = {hosts}')


def simulated_ms(text: str, step: PlannedStep | None = None, numbers: PlanNumbers = BY) -> float:
    """The simulated time of a tiny step."""
    split = Split.parse(text)
    return simulated_step_ms(step or PlannedStep(TINY, 64), split, cluster(-(-split.devices // 8)), numbers=numbers)


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (GPT, "tp=4,microbatches=4,precision=bfloat16"),
        (LLAMA, "tp=8,microbatches=4,sequence_parallel,precision=bfloat16"),
        (LLAMA, "dp=16,microbatches=2,precision=bfloat16"),
        (LLAMA, "dp=8,zero=1,microbatches=4,recompute=selective,precision=bfloat16"),
        (GPT, "pp=4,tp=2,microbatches=8,precision=bfloat16"),
        (MIXTURE, "dp=8,ep=8,microbatches=2,precision=bfloat16"),
    ],
)
def test_the_closed_form_is_close(model: ModelDescription, text: str) -> None:
    """Within 6 %."""
    split, step = Split.parse(text), PlannedStep(model, 2048)
    on = cluster(-(-split.devices // 8))
    closed_ms = assembled(step_terms(step, Machine.of(on), Configurations.of([split])), BY).step_ns[0] / 1e6
    assert simulated_step_ms(step, split, on, numbers=BY) == pytest.approx(closed_ms, rel=0.06)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("products", "tp=2,precision=bfloat16"),
        ("attention", "tp=2,precision=bfloat16"),
        ("inside", "tp=2,precision=bfloat16"),
        ("kernel_ns", "tp=2,precision=bfloat16"),
        ("launch_ns", "tp=2,precision=bfloat16"),
        ("gradients", "dp=16,precision=bfloat16"),
        ("microbatch_ns", "microbatches=2,precision=bfloat16"),
        ("step_ns", "tp=2,precision=bfloat16"),
    ],
)
def test_a_time_of_the_numbers_makes_a_step_longer(name: str, text: str) -> None:
    """Each is used."""
    more = BY._replace(**{name: getattr(BY, name) * 8})
    assert simulated_ms(text, numbers=more) > simulated_ms(text)


@pytest.mark.parametrize("name", ["memory", "optimizer", "network"])
def test_a_share_of_the_numbers_makes_a_step_shorter(name: str) -> None:
    """Each is used."""
    step = PlannedStep(GptModel(layers=2, hidden=1024, heads=8, vocabulary=512, positions=256), 256)
    less = BY._replace(**{name: getattr(BY, name) / 8})
    text = "dp=16,precision=bfloat16"
    assert simulated_ms(text, step, less) > simulated_ms(text, step)


def test_a_stage_waits_for_its_sends_unless_they_hide() -> None:
    """Slow ports make the difference."""
    step, slow = (
        PlannedStep(GptModel(layers=16, hidden=1024, heads=8, vocabulary=512, tied=False), 1024),
        BY._replace(network=0.5),
    )
    text = "pp=4,tp=8,microbatches=8,precision=bfloat16"
    assert simulated_ms(text, step, slow) > simulated_ms(f"{text},overlap=pp", step, slow)


def test_gradients_of_two_bytes_are_reduced_faster() -> None:
    """As are parameters of two bytes gathered."""
    model = GptModel(layers=2, hidden=1024, heads=8, vocabulary=512, positions=256)
    text = "dp=16,zero=1,precision=bfloat16"
    whole = simulated_ms(text, PlannedStep(model, 256, gathered_bytes=4))
    assert simulated_ms(text, PlannedStep(model, 256, gradient_bytes=2, gathered_bytes=4)) < whole
    assert simulated_ms(text, PlannedStep(model, 256, gathered_bytes=2)) < whole


def test_fused_accumulation_takes_no_time() -> None:
    """And a lighter optimizer takes less."""
    model = GptModel(layers=2, hidden=1024, heads=8, vocabulary=512, positions=256)
    text = "microbatches=4,precision=bfloat16"
    whole = simulated_ms(text, PlannedStep(model, 256, accumulation_bytes=18, optimizer_bytes=66))
    assert simulated_ms(text, PlannedStep(model, 256, accumulation_bytes=0, optimizer_bytes=66)) < whole
    assert simulated_ms(text, PlannedStep(model, 256, accumulation_bytes=18, optimizer_bytes=34)) < whole


@pytest.mark.parametrize(
    "lacking", [{"fused_attention": False}, {"fused_loss": False}, {"dropout": True}, {"gathers_again": True}]
)
def test_what_no_builder_makes_is_refused(lacking: dict[str, bool]) -> None:
    """Rather than simulated as something else."""
    with pytest.raises(UnimplementedError, match="plan without it to simulate the graph"):
        simulated_ms("tp=2,precision=bfloat16", PlannedStep(TINY, 64, **lacking))
