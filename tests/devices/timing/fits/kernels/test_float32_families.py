"""Float32 kernels that were timed one call at a time: laws of the formulas, and what of a measurement is the kernel."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.devices.calibration.fitting.kernels import TimedKernels, fit_kernels
from partita.devices.catalog import device_spec
from partita.devices.timing.fits.kernels.elementwise import NORMS, ElementwiseRows
from partita.devices.timing.fits.kernels.kernel_model import KernelModel
from partita.devices.timing.fits.kernels.kernel_rows import KernelRows
from partita.devices.timing.fits.kernels.launched import ASSUMED_FLOOR_NS, LAUNCH
from partita.devices.timing.fits.kernels.products_fp32 import Fp32ProductRows
from partita.devices.timing.fits.kernels.transferred import transferred, transferred_kernels

V100, T4 = device_spec("V100-PCIe"), device_spec("T4")
sizes = st.integers(1, 5000)


def start(family: type[KernelRows]) -> tuple[float, ...]:
    """The numbers where the fit begins."""
    return tuple(number.start for number in family.NUMBERS)


def elementwise(op: str, rows: list[int], columns: list[int]) -> ElementwiseRows:
    """Kernels of one op."""
    return ElementwiseRows({"op": [op] * len(rows)}, {"rows": rows, "columns": columns})


def products(op: str, *mnk: tuple[int, int, int, int]) -> Fp32ProductRows:
    """Products of batch, m, n, k."""
    columns = zip(Fp32ProductRows.COUNTS, zip(*mnk, strict=True), strict=True)
    return Fp32ProductRows({"op": [op] * len(mnk)}, {name: list(column) for name, column in columns})


@given(st.sampled_from(ElementwiseRows.TEXTS["op"]), sizes, sizes, st.sampled_from(["V100-PCIe", "T4", "H100-SXM"]))
def test_more_rows_take_no_less(op: str, rows: int, columns: int, name: str) -> None:
    """Twice the rows of a kernel that is bound by memory are not faster once they are out of the L2."""
    two = elementwise(op, [rows + 100_000, 2 * rows + 200_000], [columns, columns])
    one, other = two.formula_ns(start(ElementwiseRows), device_spec(name))
    assert 0 < one <= other


@given(st.sampled_from(["linear", "bmm"]), st.tuples(sizes, sizes, sizes, sizes), st.integers(1, 3))
def test_a_larger_product_takes_no_less(op: str, mnk: tuple[int, int, int, int], grown: int) -> None:
    """In m, n and k, once they are out of the L2."""
    larger = tuple(size * 2 if i == grown else size for i, size in enumerate(mnk))
    two = products(op, mnk, larger)  # type: ignore[arg-type]  # four sizes each
    numbers = start(Fp32ProductRows)[:8] + (1e-9,) + start(Fp32ProductRows)[9:]  # no faster in the L2
    one, other = two.formula_ns(numbers, V100)
    assert 0 < one <= other * (1 + 1e-9)


def test_the_bias_and_shared_weights() -> None:
    """A linear layer reads its weights once and a bias, a batch of products all factors."""
    mine, theirs = products("linear", (2, 3, 4, 5)), products("bmm", (2, 3, 4, 5))
    assert mine.bytes[0] == 4 * (2 * 3 * 5 + 4 * 5 + 4 + 2 * 3 * 4)
    assert theirs.bytes[0] == 4 * 2 * (3 * 5 + 5 * 4 + 3 * 4)
    assert mine.flops[0] == theirs.flops[0] == 2 * 2 * 3 * 4 * 5


@given(st.floats(1, 1e6), st.floats(5e3, 2e5), st.floats(0.3, 0.8))
def test_a_measurement_holds_the_launch(kernel_ns: float, host: float, gap: float) -> None:
    """The longer of host, and gap and kernel; the kernel comes out again where it is seen."""
    rows = elementwise("add", [8], [8])
    numbers = (host, gap, *start(ElementwiseRows)[2:])
    kernel = np.array([kernel_ns])
    timed = rows.timed_ns(kernel, numbers, V100)
    assert timed[0] == max(host, host * gap + kernel_ns)
    shown = rows.shown_ns(timed, kernel, numbers, V100)
    if timed[0] > 1.1 * host:
        assert shown[0] == pytest.approx(kernel_ns, rel=0.5 if kernel_ns < 500 else 1e-6)
    if host * gap + kernel_ns < 0.9 * host:
        assert np.isnan(shown[0])


def fitted(noise: float = 0.02) -> dict[str, KernelModel[ElementwiseRows]]:
    """Models of adds and softmaxes of two GPUs, from times of the formula behind a launch of 30 us."""
    draw = np.random.default_rng(0)
    measured = {}
    for spec in (V100, T4):
        shapes = [np.exp2(draw.uniform(4, high, 240)).astype(int).tolist() for high in (14, 12)]
        rows = ElementwiseRows({"op": ["add", "softmax"] * 120}, dict(zip(ElementwiseRows.COUNTS, shapes, strict=True)))
        numbers = (30_000, 0.5, 0.9, *start(ElementwiseRows)[3:])
        times = np.empty(240)
        for op in ("add", "softmax"):
            of = rows.of_type("op", op)
            some = rows.take(of)
            times[of] = some.timed_ns(some.formula_ns(numbers, spec), numbers, spec)
        measured[spec.name] = TimedKernels(rows, times * np.exp(draw.normal(0, noise, 240)), spec)
    return fit_kernels(measured, source="made up", date="2026-11-29", pooled=True)


def test_what_was_measured_and_the_kernel_alone() -> None:
    """A fit finds host, gap and bandwidth; a cost has neither host nor gap, and is at least the floor of a kernel."""
    for name, model in fitted().items():
        host, gap, bandwidth = model.groups["add"].numbers[:3]
        assert host == pytest.approx(30_000, rel=0.02), name
        assert gap == pytest.approx(0.5, rel=0.1), name
        assert bandwidth == pytest.approx(0.9, rel=0.05), name
        small, large = elementwise("add", [8], [8]), elementwise("add", [8192], [8192])
        assert model.predict(small).time_ns[0] == pytest.approx(30_000, rel=0.02)
        assert model.predict_kernels(small).time_ns[0] == ASSUMED_FLOOR_NS
        between = model.predict(large).time_ns[0] - model.predict_kernels(large).time_ns[0]
        assert between == pytest.approx(gap * host, rel=1e-6)
        assert model.predict(small).low_ns[0] < model.predict(small).time_ns[0] < model.predict(small).high_ns[0]


def test_only_norms_have_surfaces() -> None:
    """Elementwise kernels are what their bytes say; a surface learns steps and alignment of norms."""
    model = fitted()["T4"]
    assert [group for group, fit in model.groups.items() if fit.surface is not None] == ["softmax"]
    assert [op for op in ElementwiseRows.TEXTS["op"] if ElementwiseRows.has_surface(op)] == list(NORMS)


def test_transferred_measurements_and_kernels() -> None:
    """Another GPU is measured with a launch too, and its kernels alone are faster by what the launch takes."""
    asked, donors = elementwise("add", [16, 8192], [16, 8192]), list(fitted().values())
    said, alone = (of(donors, asked, device_spec("P4")) for of in (transferred, transferred_kernels))
    assert said.time_ns[0] == pytest.approx(30_000, rel=0.05)
    assert alone.time_ns[0] == ASSUMED_FLOOR_NS
    assert 0.85 < alone.time_ns[1] / (asked.datasheet_ns(device_spec("P4"))[1] / 0.9) < 1.15
    assert np.all(said.high_ns > said.time_ns)
    assert [number.name for number in LAUNCH] == ["host", "gap"]
