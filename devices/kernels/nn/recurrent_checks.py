"""What recurrent cells demand of the shapes of their inputs, in TensorFlow's words.

check_sizes("h_prev", h, ("batch_size", 2), ("cell_size", 4))      Rank of h_prev must be 2, got 1
                                                                   h_prev.dims(1) != cell_size: 3 vs. 4
"""

from __future__ import annotations

from collections.abc import Sequence

from ....errors import InvalidArgumentError
from ....graph.dtypes import Array
from ..checks import require

Size = tuple[str, int]
"""what a size is, and how large it must be"""


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
