"""The check of memory layouts finds kernels that look at more than the values of their inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from partita.errors import InvalidArgumentError
from partita.graph.dtypes import Array
from tests.devices.kernels import layouts
from tests.devices.kernels.harness import construct
from tests.devices.kernels.layouts import CHECKED, check_layouts

X = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.fixture(autouse=True)
def _nothing_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layouts, "_SEEN", set())


def check_of(kernel: Callable[[Array], Any]) -> None:
    def outcome(inputs: Sequence[Any]) -> Any:
        try:
            return kernel(*inputs)
        except InvalidArgumentError as error:
            return error

    check_layouts(construct("Square", X), outcome, [X])


def _backed(x: Array) -> Array:
    return x if x.base is None else x.base


def _refuse_views(x: Array) -> Array:
    if not x.flags.c_contiguous:
        raise InvalidArgumentError("views are refused")
    return x


WRONG: dict[str, Callable[[Array], Any]] = {
    "elements in the order of memory": lambda x: x.ravel("K").reshape(x.shape),
    "bytes of what lies behind a view": lambda x: np.frombuffer(_backed(x).tobytes(), x.dtype)[:1],
    "another shape": lambda x: x[: 3 if x.flags.c_contiguous else 2],
    "another type": lambda x: x if x.flags.c_contiguous else x.astype(np.float64),
    "an error": _refuse_views,
    "a written input": lambda x: np.negative(x, out=x),
}


@pytest.mark.parametrize("kernel", WRONG.values(), ids=WRONG.keys())
def test_what_depends_on_the_layout_is_found(kernel: Callable[[Array], Any]) -> None:
    with pytest.raises((AssertionError, ValueError)):
        check_of(kernel)


def test_a_kernel_that_looks_at_values_passes_once_per_kind() -> None:
    """Two views of all inputs and one broadcast input; the second call of the same op, types and ranks runs nothing."""
    before = CHECKED["Square"]
    check_of(np.square)
    check_of(np.square)
    assert CHECKED["Square"] - before == 3


def test_an_error_of_every_layout_is_the_same() -> None:
    """Views are refused as dense inputs are."""

    def refuse(x: Array) -> Array:
        raise InvalidArgumentError(f"{x.sum()} is refused")

    check_of(refuse)
