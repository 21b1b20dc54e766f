"""Costs of random numbers: rounds of a cipher for each word, and what makes a number of the wanted kind of it."""

from __future__ import annotations

from ..host_times import PASS_NS
from ..op_cost import CostContext, bytes_moved, flops, moves, output_bytes, takes_host_time

_PHILOX = 25
"""operations per word of Philox 4x32-10: ten rounds of ten operations make four words (Salmon et al., SC 2011)"""
_BOX_MULLER = 45
"""operations per normal number beside its word: logarithm, root, sine and cosine for two of them"""

takes_host_time(
    PASS_NS,
    *("RngReadAndSkip", "RngSkip"),
    *("StatelessRandomGetAlg", "StatelessRandomGetKeyCounter", "StatelessRandomGetKeyCounterAlg"),
)
moves("RandomShuffle", "StatelessShuffle")

_UNIFORM = (
    *("NonDeterministicInts", "RandomUniform", "RandomUniformInt"),
    *("StatefulUniform", "StatefulUniformFullInt", "StatefulUniformInt"),
    *("StatelessRandomUniform", "StatelessRandomUniformFullInt", "StatelessRandomUniformFullIntV2"),
    *("StatelessRandomUniformInt", "StatelessRandomUniformIntV2", "StatelessRandomUniformV2"),
)
_NORMAL = (
    *("RandomStandardNormal", "StatefulStandardNormal", "StatefulStandardNormalV2"),
    *("StatefulTruncatedNormal", "StatelessRandomNormal", "StatelessRandomNormalV2"),
    *("StatelessTruncatedNormal", "StatelessTruncatedNormalV2", "TruncatedNormal"),
)


@flops(*_UNIFORM)
def uniform(c: CostContext) -> int:
    """A word per number, and its scale and shift."""
    return (_PHILOX + 2) * c.elements_out()


@flops(*_NORMAL)
def normal(c: CostContext) -> int:
    """A word per number; of the truncated ones 5 % are drawn again, which is not counted."""
    return (_PHILOX + _BOX_MULLER) * c.elements_out()


bytes_moved(*_UNIFORM, *_NORMAL)(output_bytes)


@flops("ParameterizedTruncatedNormal", "StatelessParameterizedTruncatedNormal")
def scaled_normal(c: CostContext) -> int:
    """A normal number, scaled and compared with two limits."""
    return (_PHILOX + _BOX_MULLER + 4) * c.elements_out()


@flops("RandomGamma", "StatelessRandomGammaV2", "StatelessRandomGammaV3")
def gamma(c: CostContext) -> int:
    """A normal and a uniform number, of which 95 % are taken, and two logarithms (Marsaglia and Tsang, 2000)."""
    return (2 * _PHILOX + _BOX_MULLER + 50) * c.elements_out()


@flops("Multinomial", "StatelessMultinomial")
def multinomial(c: CostContext) -> int:
    """A subtraction, an exponential and an addition per logit; a binary search among the classes per sample."""
    return 3 * c.elements_in(0) + c.elements_out() * max(c.inputs[0][-1], 1).bit_length()


@flops("RandomIndexShuffle")
def index_shuffle(c: CostContext) -> int:
    """Four rounds of a cipher per index, as the attr says where there is one."""
    return 10 * int(c.attrs.get("rounds", 4)) * c.elements_out()


@flops("SobolSample")
def sobol(c: CostContext) -> int:
    """One exclusive or and one scale per number, by the order of Gray."""
    return 2 * c.elements_out()


@flops("ComputeAccidentalHits")
def hits(c: CostContext) -> int:
    """Each true class is looked up among the samples, which are entered first."""
    return 10 * (c.elements_in(0) + c.elements_in(1))


@flops(
    *("AllCandidateSampler", "FixedUnigramCandidateSampler", "LearnedUnigramCandidateSampler"),
    *("LogUniformCandidateSampler", "ThreadUnsafeUnigramCandidateSampler", "UniformCandidateSampler"),
)
def candidates(c: CostContext) -> int:
    """A word, a look-up among the samples and a probability for each candidate; a probability for each true class."""
    return (_PHILOX + 30) * c.elements_out(0) + 20 * c.elements_in()
