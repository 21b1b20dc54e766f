"""The formulas of the optimisers, from their papers, as the public op documentation states them.

A formula is a pure, elementwise function from values by name (variable, slots, hyperparameters, gradient) to the new
variable and slots, so rows can be updated alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ....graph.dtypes import Array

FormulaValues = Mapping[str, Array]
OptimizerFlags = Mapping[str, bool]
Formula = Callable[[FormulaValues], tuple[Array, ...]]


def gradient_descent(attrs: OptimizerFlags) -> Formula:
    """var - alpha * delta."""
    return lambda v: (v["var"] - v["alpha"] * v["delta"],)


def momentum(attrs: OptimizerFlags) -> Formula:
    """Polyak's momentum, or Nesterov's as in Sutskever et al., 2013."""
    nesterov = attrs["use_nesterov"]

    def step(v: FormulaValues) -> tuple[Array, ...]:
        accum = v["accum"] * v["momentum"] + v["grad"]
        if nesterov:
            return v["var"] - (v["grad"] * v["lr"] + accum * v["momentum"] * v["lr"]), accum
        return v["var"] - accum * v["lr"], accum

    return step


def keras_momentum(attrs: OptimizerFlags) -> Formula:
    """Momentum with the learning rate inside the accumulator, as Keras defines SGD."""
    nesterov = attrs["use_nesterov"]

    def step(v: FormulaValues) -> tuple[Array, ...]:
        accum = v["accum"] * v["momentum"] - v["grad"] * v["lr"]
        if nesterov:
            return v["var"] + (accum * v["momentum"] - v["grad"] * v["lr"]), accum
        return v["var"] + accum, accum

    return step


def _moments(v: FormulaValues) -> tuple[Array, Array, Array]:
    """Adam's step size with bias correction, and its two moments (Kingma and Ba, 2015, section 2)."""
    # As numpy scalars these are computed five times as fast as in arrays, which in turn are faster factors of arrays.
    lr, power1, power2 = v["lr"][()], v["beta1_power"][()], v["beta2_power"][()]
    rate, rest1, rest2 = map(
        np.asarray, (lr * np.sqrt(1 - power2) / (1 - power1), 1 - v["beta1"][()], 1 - v["beta2"][()])
    )
    m = v["m"] + (v["grad"] - v["m"]) * rest1
    second = v["v"] + (np.square(v["grad"]) - v["v"]) * rest2
    return rate, m, second


def adam(attrs: OptimizerFlags) -> Formula:
    """Adam (Kingma and Ba, 2015); with Nesterov's momentum as in Dozat, 2016."""
    nesterov = attrs["use_nesterov"]

    def step(v: FormulaValues) -> tuple[Array, ...]:
        rate, m, second = _moments(v)
        direction = m * v["beta1"] + (1 - v["beta1"]) * v["grad"] if nesterov else m
        return v["var"] - direction * rate / (np.sqrt(second) + v["epsilon"]), m, second

    return step


def amsgrad(attrs: OptimizerFlags) -> Formula:
    """AMSGrad (Reddi et al., 2018): Adam whose second moment never shrinks."""

    def step(v: FormulaValues) -> tuple[Array, ...]:
        rate, m, second = _moments(v)
        largest = np.maximum(v["vhat"], second)
        return v["var"] - m * rate / (np.sqrt(largest) + v["epsilon"]), m, second, largest

    return step


def adamax(attrs: OptimizerFlags) -> Formula:
    """AdaMax (Kingma and Ba, 2015, section 7.1)."""

    def step(v: FormulaValues) -> tuple[Array, ...]:
        m = v["m"] + (v["grad"] - v["m"]) * (1 - v["beta1"])
        largest = np.maximum(v["beta2"] * v["v"], np.abs(v["grad"]))
        return v["var"] - v["lr"] / (1 - v["beta1_power"]) * (m / (largest + v["epsilon"])), m, largest

    return step


def adagrad(attrs: OptimizerFlags) -> Formula:
    """Adagrad (Duchi et al., 2011)."""
    update_slots = attrs["update_slots"]

    def step(v: FormulaValues) -> tuple[Array, ...]:
        accum = v["accum"] + np.square(v["grad"]) if update_slots else v["accum"]
        return v["var"] - v["grad"] * v["lr"] / np.sqrt(accum), accum

    return step


def adagrad_v2(attrs: OptimizerFlags) -> Formula:
    """Adagrad with a constant added to the denominator."""
    update_slots = attrs["update_slots"]

    def step(v: FormulaValues) -> tuple[Array, ...]:
        accum = v["accum"] + np.square(v["grad"]) if update_slots else v["accum"]
        return v["var"] - v["grad"] * v["lr"] / (np.sqrt(accum) + v["epsilon"]), accum

    return step


def adagrad_da(attrs: OptimizerFlags) -> Formula:
    """Adagrad with dual averaging (Duchi et al., 2011, section 1.2), with l1 and l2 penalties."""

    def step(v: FormulaValues) -> tuple[Array, ...]:
        total, squares = v["gradient_accumulator"] + v["grad"], v["gradient_squared_accumulator"] + np.square(v["grad"])
        steps = v["global_step"].astype(v["var"].dtype)
        shrunk = np.sign(total) * np.maximum(np.abs(total) - v["l1"] * steps, 0) if v["l1"] > 0 else total
        return -v["lr"] * shrunk / (v["l2"] * steps * v["lr"] + np.sqrt(squares)), total, squares

    return step


def adadelta(attrs: OptimizerFlags) -> Formula:
    """Adadelta (Zeiler, 2012, algorithm 1)."""

    def step(v: FormulaValues) -> tuple[Array, ...]:
        rho, epsilon = v["rho"], v["epsilon"]
        accum = v["accum"] * rho + np.square(v["grad"]) * (1 - rho)
        update = np.sqrt(v["accum_update"] + epsilon) / np.sqrt(accum + epsilon) * v["grad"]
        return v["var"] - update * v["lr"], accum, v["accum_update"] * rho + np.square(update) * (1 - rho)

    return step


def rms_prop(attrs: OptimizerFlags) -> Formula:
    """RMSProp (Tieleman and Hinton, 2012) with momentum."""

    def step(v: FormulaValues) -> tuple[Array, ...]:
        ms = v["ms"] + (np.square(v["grad"]) - v["ms"]) * (1 - v["rho"])
        mom = v["mom"] * v["momentum"] + v["grad"] * v["lr"] / np.sqrt(ms + v["epsilon"])
        return v["var"] - mom, ms, mom

    return step


def centered_rms_prop(attrs: OptimizerFlags) -> Formula:
    """RMSProp by the variance of the gradient in place of its second moment (Graves, 2013, section 4.2)."""

    def step(v: FormulaValues) -> tuple[Array, ...]:
        ms = v["ms"] + (np.square(v["grad"]) - v["ms"]) * (1 - v["rho"])
        mg = v["mg"] + (v["grad"] - v["mg"]) * (1 - v["rho"])
        mom = v["mom"] * v["momentum"] + v["grad"] * v["lr"] / np.sqrt(ms - np.square(mg) + v["epsilon"])
        return v["var"] - mom, mg, ms, mom

    return step


def ftrl(attrs: OptimizerFlags) -> Formula:
    """Follow the regularised leader (McMahan et al., 2013, algorithm 1), with shrinkage in version two."""
    scaled = attrs["multiply_linear_by_lr"]

    def step(v: FormulaValues) -> tuple[Array, ...]:
        var, lr, power = v["var"], v["lr"], -v["lr_power"]
        shrunk = v["grad"] + 2 * v["l2_shrinkage"] * var if "l2_shrinkage" in v else v["grad"]
        accum = v["accum"] + np.square(v["grad"])
        grown = accum**power - v["accum"] ** power
        if scaled:  # all terms times lr, for learning rates close to zero
            linear = v["linear"] + (shrunk * lr - grown * var)
            curvature, threshold = accum**power + 2 * v["l2"] * lr, v["l1"] * lr
        else:
            linear = v["linear"] + (shrunk - grown / lr * var)
            curvature, threshold = accum**power / lr + 2 * v["l2"], v["l1"]
        clipped = np.clip(linear, -threshold, threshold)
        return (clipped - linear) / curvature, accum, linear

    return step


def _proximal(prox: Array, lr: Array, l1: Array, l2: Array) -> Array:
    """The point nearest to `prox` under the l1 and l2 penalties (Duchi and Singer, 2009)."""
    shrunk = np.sign(prox) * np.maximum(np.abs(prox) - lr * np.maximum(l1, 0), 0)
    return np.asarray(shrunk / (1 + l2 * lr))


def proximal_gradient_descent(attrs: OptimizerFlags) -> Formula:
    """Forward-backward splitting (Duchi and Singer, 2009)."""
    return lambda v: (_proximal(v["var"] - v["delta"] * v["alpha"], v["alpha"], v["l1"], v["l2"]),)


def proximal_adagrad(attrs: OptimizerFlags) -> Formula:
    """Forward-backward splitting with Adagrad's learning rates."""

    def step(v: FormulaValues) -> tuple[Array, ...]:
        accum = v["accum"] + np.square(v["grad"])
        rate = v["lr"] / np.sqrt(accum)
        return _proximal(v["var"] - v["grad"] * rate, rate, v["l1"], v["l2"]), accum

    return step


def add_sign(attrs: OptimizerFlags) -> Formula:
    """AddSign (Bello et al., 2017)."""

    def step(v: FormulaValues) -> tuple[Array, ...]:
        m = v["m"] * v["beta"] + v["grad"] * (1 - v["beta"])
        agreement = np.sign(v["grad"]) * np.sign(m)
        return v["var"] - v["lr"] * (v["alpha"] + v["sign_decay"] * agreement) * v["grad"], m

    return step


def power_sign(attrs: OptimizerFlags) -> Formula:
    """PowerSign (Bello et al., 2017)."""

    def step(v: FormulaValues) -> tuple[Array, ...]:
        m = v["m"] * v["beta"] + v["grad"] * (1 - v["beta"])
        agreement = np.sign(v["grad"]) * np.sign(m)
        return v["var"] - v["lr"] * np.exp(v["logbase"] * v["sign_decay"] * agreement) * v["grad"], m

    return step
