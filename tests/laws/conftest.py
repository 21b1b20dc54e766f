"""Every step that a law runs holds the law of keys too."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.rendezvous.keys import no_key_sent_twice


@pytest.fixture(autouse=True)
def _law_of_keys() -> Iterator[None]:
    """No key is sent twice in one step."""
    with no_key_sent_twice():
        yield
