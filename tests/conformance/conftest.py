"""Records in a test's report which corpus case it ran; `tests/conftest.py` prints a summary. Watches keys, too."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conformance.corpus import Case, ErrorCase, ShapeCase, size
from tests.rendezvous.keys import no_key_sent_twice


@pytest.fixture(autouse=True)
def _law_of_keys() -> Iterator[None]:
    """No key is sent twice in one step."""
    with no_key_sent_twice():
        yield


@pytest.fixture(autouse=True)
def _account_for_case(request: pytest.FixtureRequest) -> None:
    """Records suite, family and ops of a test that is parametrised with a `case`, and how many cases the family has."""
    callspec = getattr(request.node, "callspec", None)
    case = None if callspec is None else callspec.params.get("case")
    if isinstance(case, Case | ErrorCase | ShapeCase):
        suite = request.path.stem.removeprefix("test_")
        request.node.user_properties.append(("conformance", f"{suite}:{case.family}:{size(case)}:{case.name}"))
        if isinstance(case, Case):
            request.node.user_properties.append(("ops", f"{suite}:{' '.join(sorted(case.ops))}"))
