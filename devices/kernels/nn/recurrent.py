"""Whole recurrent cells, and their gradients, as single ops.

LSTM (Hochreiter and Schmidhuber, 1997; peepholes: Gers, 2000), GRU (Cho, 2014).

The joined weights of all gates multiply [input, previous output] once per step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.dtypes import Array
from ..checks import require
from ..half_types import in_float32
from ..linalg.products import matrix_product
from ..registry import Construction, Kernel, kernel

Size = tuple[str, int]
"""what a size is, and how large it must be"""
CellStep = Callable[..., tuple[Array, ...]]

_OUTPUTS = "i cs f o ci co"  # what an LSTM gives beside its output, in TensorFlow's names
_PEEPS = "wci wcf wco"


def check_rank(name: str, value: Array, rank: int) -> None:
    """InvalidArgumentError unless a tensor has so many axes."""
    if value.ndim != rank:
        raise InvalidArgumentError(f"Rank of {name} must be {rank}, got {value.ndim}")


def check_sizes(name: str, value: Array, *sizes: Size) -> None:
    """InvalidArgumentError unless a tensor has these sizes."""
    check_rank(name, value, len(sizes))
    for axis, (what, size) in enumerate(sizes):
        if value.shape[axis] != size:
            raise InvalidArgumentError(f"{name}.dims({axis}) != {what}: {value.shape[axis]} vs. {size}")


def check_cell(x: Array, states: dict[str, Array], weights: dict[str, Array], biases: dict[str, Array]) -> None:
    """InvalidArgumentError unless the tensors of one step fit together.

    `x` is [batch, input]. States are [batch, cell]; the first one says how large a cell is. Weights are
    [input + cell, gates * cell] and biases [gates * cell] for one gate or several.
    """
    check_rank("x", x, 2)
    name, state = next(iter(states.items()))
    check_rank(name, state, 2)
    cell = ("cell_size", state.shape[1])
    for name, state in states.items():
        check_sizes(name, state, ("batch_size", x.shape[0]), cell)
    for name, value in weights.items():
        check_sizes(name, value, ("input_size + cell_size", x.shape[1] + cell[1]), _gates(name, cell))
    for name, value in biases.items():
        check_sizes(name, value, _gates(name, cell))


_GATES = {"w": 4, "b": 4, "w_ru": 2, "b_ru": 2}


def _gates(name: str, cell: Size) -> Size:
    """How large the last axis of weights or biases is: those of a single gate have the size of a cell."""
    gates = _GATES.get(name, 1)
    return cell if gates == 1 else (f"{cell[0]} * {gates}", gates * cell[1])


def check_sequence(length: Array, x: Array) -> None:
    """InvalidArgumentError unless the number of steps is one number and the inputs are [time, batch, input]."""
    require(length.ndim == 0, f"`seq_len_max_tensor` must be rank 0 but is rank {length.ndim}")
    require(x.ndim == 3, f"x must be rank 3 but is rank {x.ndim}")


def check_outputs(x: Array, cell_size: int, names: str, values: Sequence[Array]) -> None:
    """InvalidArgumentError unless each of the named outputs of a whole sequence is [time, batch, cell]."""
    sizes = (("timelen", x.shape[0]), ("batch_size", x.shape[1]), ("cell_size", cell_size))
    for name, value in zip(names.split(), values, strict=True):
        require(value.ndim == 3, f"{name} must be rank 3. Received: {value.ndim}")
        check_sizes(name, value, *sizes)


def _sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)), x.dtype)


def _lstm_step(node: Construction, order: str) -> CellStep:
    """One step; `order` is the order of the gates in the joined weights (i input, c new cell, f forget, o output)."""
    attrs = node.attrs
    forget, clip, peephole = attrs.get("forget_bias", 0.0), float(attrs["cell_clip"]), bool(attrs["use_peephole"])

    def step(
        x: Array, cell: Array, h: Array, w: Array, wci: Array, wcf: Array, wco: Array, b: Array
    ) -> tuple[Array, ...]:
        biases = {"b": b, "wci": wci, "wcf": wcf, "wco": wco}
        check_cell(x, {"cs_prev": cell, "h_prev": h}, {"w": w}, biases)
        joined = matrix_product(np.concatenate([x, h], axis=1), w) + b
        gate = dict(zip(order, np.split(joined, 4, axis=1), strict=True))
        i = _sigmoid(gate["i"] + wci * cell if peephole else gate["i"])
        f_in = gate["f"] + x.dtype.type(forget)
        f = _sigmoid(f_in + wcf * cell if peephole else f_in)
        new = np.tanh(gate["c"])
        cell = new * i + cell * f
        cell = np.clip(cell, -clip, clip) if clip > 0 else cell
        o = _sigmoid(gate["o"] + wco * cell if peephole else gate["o"])
        out = np.tanh(cell)
        return i, cell, f, o, new, out, out * o

    return step


@kernel("LSTMBlockCell")
def lstm_block_cell(node: Construction) -> Kernel:
    """One step of an LSTM: input gate, cell, forget gate, output gate, new cell, its tanh, output."""
    return in_float32(_lstm_step(node, "icfo"), node.output_types[0])


@kernel("BlockLSTM", "BlockLSTMV2")
def block_lstm(node: Construction) -> Kernel:
    """An LSTM over time: every output of every step, stacked; zeros from step `seq_len_max` on."""
    step = _lstm_step(node, "icfo" if node.op == "BlockLSTM" else "ifco")

    def unrolled(length: Array, x: Array, cell: Array, h: Array, *weights: Array) -> tuple[Array, ...]:
        check_sequence(length, x)
        require(h.ndim == 2, "h_prev must be 2D")
        shape = (x.shape[0], x.shape[1], h.shape[-1])
        results = tuple(np.zeros(shape, x.dtype) for _ in range(7))
        for time in range(min(int(length), x.shape[0])):
            values = step(x[time], cell, h, *weights)
            for result, value in zip(results, values, strict=True):
                result[time] = value
            cell, h = values[1], values[6]
        return results

    return in_float32(unrolled, node.output_types[0])


def _lstm_back(node: Construction, order: str) -> CellStep:
    """One step back: gradients of the previous cell, of the joined gates before their functions, of the peepholes.

    The gradient passes through a clipped cell as if it had not been clipped, as in TensorFlow.
    """
    peephole = bool(node.attrs["use_peephole"])

    def back(
        cell: Array, peeps: tuple[Array, Array, Array], outputs: tuple[Array, ...], d_cell: Array, d_h: Array
    ) -> tuple[Array, ...]:
        wci, wcf, wco = peeps
        i, new_cell, f, o, new, out = outputs
        d_o = o * (1 - o) * d_h * out
        d_new_cell = (1 - out * out) * d_h * o + d_cell
        d_new_cell = d_new_cell + d_o * wco if peephole else d_new_cell
        d_f, d_i = f * (1 - f) * d_new_cell * cell, i * (1 - i) * d_new_cell * new
        d_gates = {"i": d_i, "c": (1 - new * new) * d_new_cell * i, "f": d_f, "o": d_o}
        d_previous = d_new_cell * f
        joined = np.concatenate([d_gates[gate] for gate in order], axis=1)
        if not peephole:
            return d_previous, joined, *map(np.zeros_like, peeps)
        d_previous += d_i * wci + d_f * wcf
        d_peeps = (d_i * cell).sum(axis=0), (d_f * cell).sum(axis=0), (d_o * new_cell).sum(axis=0)
        return d_previous, joined, *d_peeps

    return back


@kernel("LSTMBlockCellGrad")
def lstm_block_cell_grad(node: Construction) -> Kernel:
    """Gradients of the previous cell, of the joined gates and of the three peepholes."""
    back = _lstm_back(node, "icfo")

    def run(x: Array, cell: Array, h: Array, w: Array, *rest: Array) -> tuple[Array, ...]:
        peeps, b, outputs, (d_cell, d_h) = rest[:3], rest[3], rest[4:10], rest[10:]
        states = {"cs_prev": cell, "h_prev": h, **dict(zip(_OUTPUTS.split(), outputs, strict=True))}
        states |= {"cs_grad_tensor": d_cell, "h_grad_tensor": d_h}
        check_cell(x, states, {"w": w}, {"b": b, **dict(zip(_PEEPS.split(), peeps, strict=True))})
        return back(cell, peeps, outputs, d_cell, d_h)

    return in_float32(run, node.output_types[0])


@kernel("BlockLSTMGrad", "BlockLSTMGradV2")
def block_lstm_grad(node: Construction) -> Kernel:
    """Gradients of the input at every step, of the first cell and output, of weights, peepholes and bias."""
    back = _lstm_back(node, "icfo" if node.op == "BlockLSTMGrad" else "ifco")

    def run(length: Array, x: Array, cell: Array, h: Array, w: Array, *rest: Array) -> tuple[Array, ...]:
        peeps, b, outputs, d_cells, d_outs = rest[:3], rest[3], rest[4:11], rest[11], rest[12]
        check_sequence(length, x)
        first = np.empty(x.shape[1:], x.dtype)
        biases = {"b": b, **dict(zip(_PEEPS.split(), peeps, strict=True))}
        check_cell(first, {"cs_prev": cell, "h_prev": h}, {"w": w}, biases)
        check_outputs(x, cell.shape[1], f"{_OUTPUTS} h cs_grad h_grad", (*outputs, d_cells, d_outs))
        d_x, d_w, d_b = np.zeros_like(x), np.zeros_like(w), np.zeros_like(b)
        d_peeps = [np.zeros_like(peep) for peep in peeps]
        d_cell, d_h = np.zeros_like(cell), np.zeros_like(h)
        for time in reversed(range(min(int(length), len(x)))):
            before, out_before = (outputs[1][time - 1], outputs[6][time - 1]) if time else (cell, h)
            values = tuple(output[time] for output in outputs[:6])
            d_cell, d_gates, *d_now = back(before, peeps, values, d_cells[time] + d_cell, d_outs[time] + d_h)
            for total, part in zip(d_peeps, d_now, strict=True):
                total += part
            d_x[time], d_h = np.split(matrix_product(d_gates, w.T), [x.shape[2]], axis=1)
            d_w += matrix_product(np.concatenate([x[time], out_before], axis=1).T, d_gates)
            d_b += d_gates.sum(axis=0)
        return d_x, d_cell, d_h, d_w, *d_peeps, d_b

    return in_float32(run, node.output_types[0])


@kernel("GRUBlockCell")
def gru_block_cell(node: Construction) -> Kernel:
    """One step of a GRU: reset gate, update gate, candidate, output."""

    def step(x: Array, h: Array, w_gates: Array, w_new: Array, b_gates: Array, b_new: Array) -> tuple[Array, ...]:
        check_cell(x, {"h_prev": h}, {"w_ru": w_gates, "w_c": w_new}, {"b_ru": b_gates, "b_c": b_new})
        r, u = np.split(_sigmoid(matrix_product(np.concatenate([x, h], axis=1), w_gates) + b_gates), 2, axis=1)
        c = np.tanh(matrix_product(np.concatenate([x, h * r], axis=1), w_new) + b_new)
        return r, u, c, u * h + (1 - u) * c

    return in_float32(step, node.output_types[0])


@kernel("GRUBlockCellGrad")
def gru_block_cell_grad(node: Construction) -> Kernel:
    """Gradients of input and previous output, of the candidate and of the two gates before their functions."""

    def back(x: Array, h: Array, w_gates: Array, w_new: Array, *rest: Array) -> tuple[Array, ...]:
        b_gates, b_new, r, u, c, d_h = rest
        states = {"h_prev": h, "r": r, "u": u, "c": c, "d_h": d_h}
        check_cell(x, states, {"w_ru": w_gates, "w_c": w_new}, {"b_ru": b_gates, "b_c": b_new})
        d_new = d_h * (1 - u) * (1 - c * c)
        d_x_new, d_kept = np.split(matrix_product(d_new, w_new.T), [x.shape[1]], axis=1)
        d_gates = np.concatenate([d_kept * h * r * (1 - r), d_h * (h - c) * u * (1 - u)], axis=1)
        d_x, d_h_gates = np.split(matrix_product(d_gates, w_gates.T), [x.shape[1]], axis=1)
        return d_x + d_x_new, d_h_gates + d_kept * r + d_h * u, d_new, d_gates

    return in_float32(back, node.output_types[0])
