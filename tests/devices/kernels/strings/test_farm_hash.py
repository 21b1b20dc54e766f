"""FarmHash's fingerprints."""

from __future__ import annotations

from hypothesis import given, strategies as st

from partita.devices.kernels.strings.farm_hash import farm_fingerprint, farm_fingerprints


@given(st.lists(st.binary(max_size=70), max_size=30), st.integers(1, 150))
def test_strings_have_the_same_fingerprints_together(strings: list[bytes], copies: int) -> None:
    """As each by itself, however many of one length there are, zero bytes at the end included."""
    many = [string + b"\0" * (k % 3) for k in range(copies) for string in strings]
    assert farm_fingerprints(many).tolist() == list(map(farm_fingerprint, many))


def test_every_formula_is_used_for_many_strings() -> None:
    """Of lengths 0 to 70, a hundred and more of each."""
    many = [bytes(range(k, k + size)) for size in range(71) for k in range(120)]
    assert farm_fingerprints(many).tolist() == list(map(farm_fingerprint, many))
