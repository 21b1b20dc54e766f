"""Products whose weights are split over the ranks of tp, and the exchanges around them (Shoeybi et al. 2019).

    x --entered--> x --column--> h [rows, columns of the rank] --row--> part of a sum --left--> y + bias

Each rank computes its columns of h from the whole x, and its summand of y from its columns of h. Without sequence
parallelism x and y are whole on all ranks, and the exchanges are the identity forwards and a sum backwards, and the
reverse. With it a rank has its own rows of x and y: they are gathered, and scattered when they are summed.
"""

from __future__ import annotations

from ....graph.builder.handles import Tensor
from .network import RankNetwork


def entered(network: RankNetwork, x: Tensor) -> Tensor:
    """[own rows, width] -> [rows, width], to be read by products with the rank's columns."""
    if network.scatters_rows:
        return network.program.all_gather(x, "tp", name="gathered")
    return network.program.copied(x, "tp", name="copied")


def left(network: RankNetwork, part: Tensor) -> Tensor:
    """The sum of all ranks' parts [rows, width]: [own rows, width]."""
    if network.scatters_rows:
        return network.program.reduce_scatter(part, "tp", name="scattered")
    return network.program.all_reduce(part, "tp", name="summed")


def column(network: RankNetwork, x: Tensor, name: str, shape: tuple[int, int], *, bias: bool = True) -> Tensor:
    """The rank's columns of x @ weights (+ bias), of x [rows, shape[0]] that `entered` gave."""
    weights = network.matrix(f"{name}/weights", shape, shape[0], split=1)
    y = network.product(x, weights, f"{name}/product")
    return _biased(network, y, name, shape[1], is_split=True) if bias else y


def row(network: RankNetwork, x: Tensor, name: str, shape: tuple[int, int], *, bias: bool = True) -> Tensor:
    """x @ weights (+ bias) of x [rows, columns of the rank], shape[0] columns on all ranks: [own rows, shape[1]].

    The bias is added once, behind the sum.
    """
    weights = network.matrix(f"{name}/weights", shape, shape[0], split=0)
    y = left(network, network.product(x, weights, f"{name}/product"))
    return _biased(network, y, name, shape[1], is_split=False) if bias else y


def whole(network: RankNetwork, x: Tensor, name: str, shape: tuple[int, int]) -> Tensor:
    """x @ weights + bias of own rows, with weights that all ranks have."""
    y = network.product(x, network.matrix(f"{name}/weights", shape, shape[0]), f"{name}/product")
    return _biased(network, y, name, shape[1], is_split=False)


def _biased(network: RankNetwork, y: Tensor, name: str, size: int, *, is_split: bool) -> Tensor:
    bias = network.vector(f"{name}/bias", size, 0.0, is_split=is_split)
    return network.b.op("BiasAdd", y, bias, name=f"{name}/out")[0]
