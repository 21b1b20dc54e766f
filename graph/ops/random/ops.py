"""The ops of random numbers.

`graph/ops/record.py` explains the columns of a row.
"""

from __future__ import annotations

from ..record import Rows, State

OPS: Rows = {
    "AllCandidateSampler": {"state": State.RANDOM},
    "ComputeAccidentalHits": {},
    "FixedUnigramCandidateSampler": {"state": State.RANDOM},
    "LearnedUnigramCandidateSampler": {"state": State.RANDOM},
    "LogUniformCandidateSampler": {"state": State.RANDOM},
    "Multinomial": {"state": State.RANDOM, "is_flat": True},
    "NonDeterministicInts": {"state": State.RANDOM},
    "ParameterizedTruncatedNormal": {"state": State.RANDOM, "is_flat": True},
    "RandomCrop": {"state": State.RANDOM, "is_flat": True},
    "RandomGamma": {"state": State.RANDOM},
    "RandomIndexShuffle": {"is_flat": True},
    "RandomPoisson": {"state": State.RANDOM},
    "RandomPoissonV2": {"state": State.RANDOM},
    "RandomShuffle": {"state": State.RANDOM, "is_flat": True},
    "RandomStandardNormal": {"state": State.RANDOM, "is_flat": True},
    "RandomUniform": {"state": State.RANDOM, "is_flat": True, "is_flat_in_functions": True},
    "RandomUniformInt": {"state": State.RANDOM},
    "RngReadAndSkip": {"state": State.RANDOM},
    "RngSkip": {"state": State.RANDOM},
    "StatefulStandardNormal": {"state": State.RANDOM},
    "StatefulStandardNormalV2": {"state": State.RANDOM},
    "StatefulTruncatedNormal": {"state": State.RANDOM},
    "StatefulUniform": {"state": State.RANDOM},
    "StatefulUniformFullInt": {"state": State.RANDOM},
    "StatefulUniformInt": {"state": State.RANDOM},
    "StatelessMultinomial": {"is_flat": True},
    "StatelessRandomBinomial": {"is_flat": True},
    "StatelessRandomGetAlg": {"state": State.RANDOM},
    "StatelessRandomGetKeyCounter": {},
    "StatelessRandomGetKeyCounterAlg": {},
    "StatelessRandomNormal": {"is_flat": True},
    "StatelessRandomNormalV2": {"is_flat": True},
    "StatelessRandomPoisson": {"is_flat": True},
    "StatelessRandomUniform": {"is_flat": True},
    "StatelessRandomUniformFullInt": {"is_flat": True},
    "StatelessRandomUniformFullIntV2": {"is_flat": True},
    "StatelessRandomUniformInt": {"is_flat": True},
    "StatelessRandomUniformIntV2": {"is_flat": True},
    "StatelessRandomUniformV2": {"is_flat": True},
    "StatelessTruncatedNormal": {"is_flat": True},
    "StatelessTruncatedNormalV2": {"is_flat": True},
    "ThreadUnsafeUnigramCandidateSampler": {"state": State.RANDOM},
    "TruncatedNormal": {"state": State.RANDOM, "is_flat": True},
    "UniformCandidateSampler": {"state": State.RANDOM},
}
