"""The law of keys: within one step no key is sent twice, so that no receive can get the tensor of another one.

with no_key_sent_twice():        wraps whatever runs steps; fails at the end with the keys that were sent again
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from partita.rendezvous import LocalRendezvous


@contextmanager
def no_key_sent_twice() -> Iterator[Mapping[int, set[Hashable]]]:
    """Fails if, in the body, a rendezvous (there is one for each step) gets two messages under one key.

    Gives the keys that each rendezvous has got.
    """
    sent: dict[int, set[Hashable]] = {}  # by the identity of the rendezvous; a new one may get that of an old one
    again: set[str] = set()
    begin, send = LocalRendezvous.__init__, LocalRendezvous.send

    def begin_anew(self: LocalRendezvous) -> None:
        sent[id(self)] = set()
        begin(self)

    def send_once(self: LocalRendezvous, key: Hashable, value: Any, is_dead: bool = False) -> None:
        keys = sent.setdefault(id(self), set())
        if key in keys:
            again.add(str(key))
        keys.add(key)
        send(self, key, value, is_dead)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalRendezvous, "__init__", begin_anew)
        patch.setattr(LocalRendezvous, "send", send_once)
        yield sent
    assert not again, f"sent twice in one step: {sorted(again)[:5]}"
