"""Convolutions by algorithm: which apply, which is the fastest, and what a fit finds again."""

from __future__ import annotations

import numpy as np
from attrs import evolve
from hypothesis import given, settings, strategies as st

from partita.devices.calibration.files.convolutions import LABEL_OF, lesson_of
from partita.devices.calibration.fitting.kernels import TimedKernels, fit_kernels
from partita.devices.catalog import device_spec
from partita.devices.timing.fits.kernels.convolution_algorithms import (
    ALGORITHMS,
    DIRECT,
    EXPLICIT,
    FFT,
    FUSED,
    IMPLICIT,
    WINOGRAD,
)
from partita.devices.timing.fits.kernels.convolutions import (
    FORWARD,
    PASSES,
    TO_FILTER,
    TO_INPUT,
    Convolutions,
    idle_ns,
)
from partita.devices.timing.fits.kernels.fastest_algorithm import fastest, times_by_algorithm
from partita.graph.arrays import Floats

V100 = device_spec("V100-PCIe")
NUMBERS = tuple(number.start for number in Convolutions.NUMBERS)
SIZES = {"images": 16, "rows": 14, "columns": 14, "channels": 128, "filters": 256, "tall": 3, "broad": 3}


def one(direction: str = FORWARD, **changed: int) -> Convolutions:
    """One convolution, some sizes changed."""
    sizes = {**SIZES, "stride": 1, "groups": 1, **changed}
    return Convolutions({"pass": [direction]}, {name: [value] for name, value in sizes.items()})


def times(rows: Convolutions) -> dict[str, float]:
    """The time of the first row by algorithm, of those that apply."""
    columns = rows.times_ns(NUMBERS, V100)[:, 0].tolist()
    return {name: time for name, time in zip(ALGORITHMS, columns, strict=True) if np.isfinite(time)}


def drawn(count: int, seed: int) -> Convolutions:
    """3 x 3 convolutions of many sizes."""
    draw = np.random.default_rng(seed)
    sides = draw.integers(5, 40, count)
    counts = {
        "images": draw.integers(1, 64, count),
        "rows": sides,
        "columns": sides,
        "channels": np.exp2(draw.uniform(2, 10, count)).astype(np.int64),
        "filters": np.exp2(draw.uniform(2, 10, count)).astype(np.int64),
        **dict.fromkeys(("tall", "broad"), np.full(count, 3)),
        **dict.fromkeys(("stride", "groups"), np.ones(count, dtype=np.int64)),
    }
    return Convolutions({"pass": [FORWARD] * count}, counts)


def test_which_algorithms_apply() -> None:
    """Winograd to 3 x 3 filters moved by 1, fused not to sums; FFT to small filters; direct kernels to groups."""
    every = {IMPLICIT, EXPLICIT, FUSED, WINOGRAD, FFT}
    assert set(times(one())) == every
    assert set(times(one(TO_FILTER))) == every - {FUSED}
    assert set(times(one(tall=5, broad=5))) == {IMPLICIT, EXPLICIT, FFT}
    assert set(times(one(tall=1, broad=1))) == {IMPLICIT, EXPLICIT}
    assert set(times(one(stride=2))) == {IMPLICIT, EXPLICIT}
    assert set(times(one(groups=128))) == {IMPLICIT, EXPLICIT, DIRECT}


def test_old_generations_have_no_fused_kernels() -> None:
    """A Kepler takes the kernels of several steps, and lower rates; a GPU of unknown generation is a new one."""
    kepler = evolve(V100, compute_capability=37)
    slow, quick = (one().times_ns(NUMBERS, spec)[:, 0] for spec in (kepler, V100))
    assert np.isinf(slow[ALGORITHMS.index(FUSED)])
    assert slow[ALGORITHMS.index(WINOGRAD)] > quick[ALGORITHMS.index(WINOGRAD)]
    unknown = evolve(V100, compute_capability=0)
    assert np.array_equal(one().times_ns(NUMBERS, unknown)[:, 0], quick)


@settings(max_examples=60)
@given(
    st.sampled_from(PASSES),
    st.integers(1, 64),
    st.integers(1, 64),
    st.integers(1, 512),
    st.integers(1, 512),
    st.sampled_from([1, 3, 5, 7]),
    st.sampled_from([1, 2]),
)
def test_the_fastest_decides(
    direction: str, images: int, side: int, deep: int, wide: int, kernel: int, by: int
) -> None:
    """The formula is the least of positive times, twice the rates half of it, and more images are not faster."""
    shape = {"rows": side, "columns": side, "channels": deep, "filters": wide, "tall": kernel, "broad": kernel}
    row, more = (one(direction, images=count, stride=by, **shape) for count in (images, 2 * images))
    by_name = times(row)
    assert min(by_name.values()) == row.formula_ns(NUMBERS, V100)[0] > 0
    double = evolve(
        V100,
        peak_flops_per_s={"fp32": 2 * V100.peak_flops_per_s["fp32"]},
        memory_bandwidth_bytes_per_s=2 * V100.memory_bandwidth_bytes_per_s,
    )
    assert np.allclose(2 * row.times_ns(NUMBERS, double), row.times_ns(NUMBERS, V100))
    if direction != TO_FILTER:
        assert times(more)[IMPLICIT] >= by_name[IMPLICIT]


def test_a_gradient_to_the_input_is_a_convolution() -> None:
    """Moved by 1 it takes as long as a forward pass with channels and filters exchanged."""
    back, forward = one(TO_INPUT), one(channels=SIZES["filters"], filters=SIZES["channels"])
    assert np.array_equal(back.times_ns(NUMBERS, V100), forward.times_ns(NUMBERS, V100))
    assert back.flops[0] == forward.flops[0]


def test_operations_and_bytes_by_hand() -> None:
    """A multiplication and an addition for each point, channel, filter and pixel; images and filters of 4 bytes."""
    row = one(images=2, rows=4, columns=5, channels=6, filters=8, stride=2)
    assert row.flops[0] == 2 * 2 * 20 * 9 * 6 * 8
    assert row.bytes[0] == 4 * (2 * 80 * 6 + 2 * 20 * 8 + 9 * 6 * 8)
    assert row.datasheet_ns(V100)[0] > 0


def true_times(rows: Convolutions, numbers: tuple[float, ...], seed: int) -> Floats:
    """Of a formula, with what an idle GPU loses and 5 % of noise."""
    noise = np.random.default_rng(seed).normal(0, 0.05, len(rows))
    return np.asarray(rows.timed_ns(rows.formula_ns(numbers, V100), numbers, V100) * np.exp(noise), dtype=np.float64)


def test_labels_teach_and_are_not_needed() -> None:
    """From times and the names of algorithms a fit finds which algorithm is the fastest of rows without names."""
    numbers = (90_000.0, 0.6, 0.9, 0.8, 0.3, 0.5, 0.7, 0.25, 0.4)
    rows, asked = drawn(150, 0), drawn(200, 1)
    ran = tuple(LABEL_OF[name] for name in fastest(rows.times_ns(numbers, V100)))
    timed = TimedKernels(rows, true_times(rows, numbers, 2), V100)
    lessons = {"V100": lesson_of(timed, ran)}
    model = fit_kernels({"V100": timed}, source="made up", date="2026-11-29", lessons=lessons)["V100"]
    said = [LABEL_OF[name] for name in fastest(times_by_algorithm([model], asked, V100))]
    true = [LABEL_OF[name] for name in fastest(asked.times_ns(numbers, V100))]
    assert np.mean([one == other for one, other in zip(said, true, strict=True)]) > 0.9
    assert len(set(true)) > 1
    measured = true_times(asked, numbers, 3)
    assert np.mean(np.abs(model.predict(asked).time_ns / measured - 1)) < 0.08
    kernels = model.predict_kernels(asked).time_ns
    assert np.all(kernels < model.predict(asked).time_ns)
    assert np.mean(np.abs(kernels / asked.formula_ns(numbers, V100) - 1)) < 0.15


def test_what_is_lost_when_idle_is_no_part_of_the_kernel() -> None:
    """A measurement holds it, less of it on a faster GPU; rows that take less show no kernel."""
    slow = evolve(V100, peak_flops_per_s={"fp32": 10**12})
    assert idle_ns(NUMBERS, slow) > idle_ns(NUMBERS, V100)
    row, idle = one(), idle_ns(NUMBERS, V100)
    kernel = np.array([idle / 2])
    measured = row.timed_ns(kernel, NUMBERS, V100)
    assert measured[0] == idle * 1.5
    assert np.isnan(row.shown_ns(measured, kernel, NUMBERS, V100)[0])
    assert row.launch_share(kernel, NUMBERS, V100)[0] == 2 / 3
    shown = row.shown_ns(row.timed_ns(4 * kernel, NUMBERS, V100), 4 * kernel, NUMBERS, V100)
    assert np.allclose(shown, 4 * kernel)
