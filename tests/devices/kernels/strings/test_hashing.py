"""Hashes of strings have the published values."""

from __future__ import annotations

import numpy as np

from partita.devices.kernels.strings.farm_hash import farm_fingerprint
from partita.devices.kernels.strings.hashing import murmur_64, sip_hash
from tests.devices.kernels.harness import check_shapes
from tests.devices.kernels.random_arrays import texts
from tests.devices.kernels.strings.text_tensors import scalar


def test_hashes_are_the_published_ones() -> None:
    """Values of TensorFlow's three string hashes modulo 2**62, one for each length class of FarmHash."""
    lengths = {b"": 1936946117179621455, b"a": 3694432073954588131, b"hello world": 1769834696496558107}
    lengths |= {b"x" * 20: 3621402210320469444, b"y" * 50: 1536034821532487699, b"z" * 200: 4117204190001636188}
    assert {text: farm_fingerprint(text) % 2**62 for text in lengths} == lengths
    murmur = {b"": 105434511174508091, b"a": 2996632905371535868, b"hello world": 936430787915428847}
    assert {text: murmur_64(text) % 2**62 for text in murmur} == murmur
    sip = {b"": 443797209252341627, b"a": 546566331822570742, b"hello world": 1015233985318741638}
    assert {text: sip_hash(text, (1, 2)) % 2**62 for text in sip} == sip
    assert check_shapes("StringToHashBucketFast", texts(b"a"), num_buckets=2**62).tolist() == [lengths[b"a"]]
    assert check_shapes("StringToHashBucketStrong", texts(b"a"), num_buckets=2**62, key=[1, 2]).tolist() == [sip[b"a"]]
    fingerprint = check_shapes("Fingerprint", np.array([[b"a", b"b"], [b"c", b"d"]], object), scalar(b"farmhash64"))
    assert fingerprint[0].tolist() == [122, 64, 59, 169, 136, 60, 55, 83]
