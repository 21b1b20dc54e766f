"""Time to the first token and per further token of a deployment under load, in closed form.

    C requests at a time, each with a prompt of p and an answer of a tokens, on D replicas of attention

    alive      n = min(C / D, what fits in memory), sequences of a replica
    token      t(n) = pass of one token of n sequences with p + a / 2 tokens each, by the framework's overlap
    prompt     P    = pass of p tokens, by the framework's prefill
    further token   t(n) + (n - 1) P / a * (1 - burst / 2)        prompts of others are in between
    first token     P (1 + burst (n - 1) / 2) + t(n) + waiting    those before it, and the pass that is under way
    waiting         (C / D / n - 1) * a * further token           for memory, while C / D > n

Prompts of others: while a request makes its a tokens, each of the other n - 1 ends and another begins, once. Where all
begin together (burst), a request sees on average half of them, and waits for the other half. By Little's law those that
find no memory wait as many lifetimes of a request as there are of them for each that is alive.
"""

from __future__ import annotations

from math import exp
from typing import NamedTuple

from ...devices.timing.fits.calibration import Calibration
from ...errors import InvalidArgumentError
from .deployment import Deployment
from .frameworks import FrameworkNumbers, framework_numbers
from .passes import PassTimes, prompt_pass, token_pass


class ServingLoad(NamedTuple):
    """Requests: so many at a time in all, each with a prompt and an answer of so many tokens."""

    concurrency: float
    prompt: int
    answer: int


class ServingRates(NamedTuple):
    """Mean times in ms with the bounds of 80 % intervals, and what they are made of."""

    first_token_ms: float
    first_token_low_ms: float
    first_token_high_ms: float
    token_ms: float
    token_low_ms: float
    token_high_ms: float
    alive: float
    """sequences that a replica works on at a time"""
    token_parts: PassTimes
    """of a pass of one token, in ns"""
    prompt_parts: PassTimes
    """of a pass of a prompt, in ns"""


class PassSums(NamedTuple):
    """What the framework's numbers work on: times in ns, and the load of a replica."""

    token_ns: float
    prompt_ns: float
    alive: float
    asked: float
    answer: int


def pass_sums(
    of: Deployment, load: ServingLoad, calibration: Calibration | None = None
) -> tuple[PassSums, PassTimes, PassTimes]:
    """The sums of a deployment under a load, and the parts of both passes; InvalidArgumentError for a load below 1."""
    for name in ServingLoad._fields:
        if getattr(load, name) < 1:
            raise InvalidArgumentError(f"ServingLoad: {name}={getattr(load, name)!r} must be 1 or more")
    asked = max(1.0, load.concurrency / of.attention_dp)
    alive = min(asked, of.most_sequences(load.prompt + load.answer // 2))
    context = load.prompt + load.answer / 2
    token = token_pass(of, sequences=alive, context=context, calibration=calibration)
    prompt = prompt_pass(of, tokens=load.prompt, calibration=calibration)
    sums = PassSums(sum(token.values()), sum(prompt.values()), alive, asked, load.answer)
    return sums, token, prompt


def closed_form(sums: PassSums, numbers: FrameworkNumbers) -> tuple[float, float]:
    """Times to the first and per further token, in ns."""
    one, prompt = sums.token_ns * numbers.overlap, sums.prompt_ns * numbers.prefill
    others = sums.alive - 1
    further = one + others * prompt / sums.answer * (1 - numbers.burst / 2)
    waiting = max(0.0, sums.asked / sums.alive - 1) * sums.answer * further
    return prompt * (1 + numbers.burst * others / 2) + one + waiting, further


def serving_rates(
    deployment: Deployment, load: ServingLoad, *, framework: str, calibration: Calibration | None = None
) -> ServingRates:
    """Rates of a deployment under a load with a framework of `framework_names()`.

    `calibration` None is the catalog's. Raises InvalidArgumentError for a load below 1 and weights that do not fit,
    NotFoundError for an unknown framework, UnknownCost where a type of weights has no fit on the GPU.
    """
    numbers = framework_numbers(framework)
    sums, token, prompt = pass_sums(deployment, load, calibration)
    first, further = closed_form(sums, numbers)
    wide, wide_first = exp(numbers.token_spread), exp(numbers.first_token_spread)
    ms = 1e-6
    return ServingRates(
        first * ms,
        first / wide_first * ms,
        first * wide_first * ms,
        further * ms,
        further / wide * ms,
        further * wide * ms,
        sums.alive,
        token,
        prompt,
    )
