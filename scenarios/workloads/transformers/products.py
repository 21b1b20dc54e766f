"""Products whose weights are split over the ranks of tp, and the exchanges around them (Shoeybi et al. 2019).

    x --entered--> x --column--> h [rows, columns of the rank] --row--> part of a sum --left--> y + bias

Each rank computes its columns of h from the whole x, and its summand of y from its columns of h. Without sequence
parallelism x and y are whole on all ranks, and the exchanges are the identity forwards and a sum backwards, and the
reverse. With it a rank has its own rows of x and y: they are gathered, and scattered when they are summed.

With sequence parallelism, and where exchanges over tp may hide (`overlap` of the split), many rows go through products
in chunks: one is multiplied while the next is on its way there, and the one before it on its way back:

    entered   a | b | c | d |           `RankNetwork.chunks` says how many
    products      a | b | c | d         a chunk has as many rows of every rank
    left              a | b | c | d
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

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


Rows = Callable[[Tensor], Tensor]
"""a product of some rows"""


def column_of(
    network: RankNetwork,
    name: str,
    shape: tuple[int, int],
    *,
    bias: bool = True,
    start: Callable[[], Tensor] | None = None,
) -> Rows:
    """The rank's columns of x @ weights (+ bias), of rows [.., shape[0]] that `entered` gave.

    `start` makes the whole initial weights in place of numbers by name.
    """
    weights = network.matrix(f"{name}/weights", shape, shape[0], split=1, start=start)
    more = network.vector(f"{name}/bias", shape[1], 0.0, is_split=True) if bias else None

    def product(x: Tensor) -> Tensor:
        return biased(network, network.product(x, weights, f"{name}/product"), name, more)

    return product


def row_of(network: RankNetwork, name: str, shape: tuple[int, int], *, bias: bool = True) -> Rows:
    """x @ weights (+ bias) of rows x [.., columns of the rank], shape[0] columns on all ranks: own rows of these.

    The bias is added once, behind the sum.
    """
    weights = network.matrix(f"{name}/weights", shape, shape[0], split=0)
    more = network.vector(f"{name}/bias", shape[1], 0.0) if bias else None

    def product(x: Tensor) -> Tensor:
        return biased(network, left(network, network.product(x, weights, f"{name}/product")), name, more)

    return product


def column(network: RankNetwork, x: Tensor, name: str, shape: tuple[int, int], *, bias: bool = True) -> Tensor:
    """The rank's columns of x @ weights (+ bias), of x [rows, shape[0]] that `entered` gave."""
    return column_of(network, name, shape, bias=bias)(x)


def row(network: RankNetwork, x: Tensor, name: str, shape: tuple[int, int], *, bias: bool = True) -> Tensor:
    """x @ weights (+ bias) of x [rows, columns of the rank], shape[0] columns on all ranks: [own rows, shape[1]]."""
    return behind(network, x, row_of(network, name, shape, bias=bias))


def whole(network: RankNetwork, x: Tensor, name: str, shape: tuple[int, int]) -> Tensor:
    """x @ weights + bias of own rows, with weights that all ranks have."""
    y = network.product(x, network.matrix(f"{name}/weights", shape, shape[0]), f"{name}/product")
    return biased(network, y, name, network.vector(f"{name}/bias", shape[1], 0.0))


def biased(network: RankNetwork, y: Tensor, name: str, bias: Tensor | None) -> Tensor:
    """y [rows, size] + bias [size], if there is one."""
    return y if bias is None else network.b.op("BiasAdd", y, bias, name=f"{name}/out")[0]


# In chunks of rows


def between(network: RankNetwork, x: Tensor, products: Rows) -> Tensor:
    """Own rows of what `products`, columns and then rows, make of x [own rows, width], chunk by chunk."""
    entering = _entering(network, _cut(network, x, is_own=True))
    return _joined(network, [products(chunk) for chunk in entering], is_own=True)


def before(network: RankNetwork, x: Tensor, products: Callable[[Tensor], Sequence[Tensor]]) -> list[Tensor]:
    """The columns [rows, columns of the rank] that each of `products` makes of x [own rows, width], chunk by chunk."""
    entering = _entering(network, _cut(network, x, is_own=True))
    made = [products(chunk) for chunk in entering]
    return [_joined(network, parts, is_own=False) for parts in zip(*made, strict=True)]


def behind(network: RankNetwork, x: Tensor, product: Rows) -> Tensor:
    """Own rows of what `product` makes of x [rows, columns of the rank], chunk by chunk."""
    return _joined(network, [product(chunk) for chunk in _cut(network, x, is_own=False)], is_own=True)


def _entering(network: RankNetwork, chunks: Sequence[Tensor]) -> Iterator[Tensor]:
    """Chunks of own rows as `entered` gives them, each while the one before it is worked on."""
    coming = entered(network, chunks[0])
    for chunk in chunks[1:]:
        here, coming = coming, entered(network, chunk)
        yield here
    yield coming


def _cut(network: RankNetwork, x: Tensor, *, is_own: bool) -> list[Tensor]:
    """Own rows, or those of all ranks, in chunks; a chunk has a part of the rows of each rank, in order."""
    count = network.chunks
    if count == 1:
        return [x]
    if is_own:
        return [*network.b.op("Split", 0, x, num_split=count, name="chunks")]
    by_rank = network.reshaped(x, [network.tp, network.own_rows, -1])
    parts = network.b.op("Split", 1, by_rank, num_split=count, name="chunks")
    return [network.reshaped(part, [network.rows // count, -1]) for part in parts]


def _joined(network: RankNetwork, parts: Sequence[Tensor], *, is_own: bool) -> Tensor:
    """The rows that `_cut` cut."""
    count = network.chunks
    if count == 1:
        return parts[0]
    if is_own:
        return network.b.op("ConcatV2", [*parts], 0, name="joined")[0]
    by_rank = [network.reshaped(part, [network.tp, network.own_rows // count, -1]) for part in parts]
    return network.reshaped(network.b.op("ConcatV2", by_rank, 1, name="joined")[0], [network.rows, -1])
