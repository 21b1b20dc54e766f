"""Costs of the ops that name one operation of XLA each: products, convolutions, and what only moves."""

from __future__ import annotations

from math import prod

from ....graph.ops.xla.dimension_numbers import conv_numbers, dot_numbers
from ..op_cost import CostContext, elements_read, flops, free, moves, products
from ..op_forms import Product

moves("XlaConcatND", "XlaSetDynamicDimensionSize", "XlaSplitND")
moves("XlaBroadcastHelper", "XlaDynamicSlice", "XlaDynamicUpdateSlice", "XlaGather", "XlaPad", "XlaOptimizationBarrier")


flops("XlaReduce", "XlaVariadicReduce", "XlaVariadicReduceV2")(elements_read)
moves("XlaLaunch")  # the least of any function; the clock itself refuses nodes whose functions it cannot see into
free("XlaReplicaId", "XlaSetBound")


@flops("XlaScatter")
def scatter(c: CostContext) -> int:
    """One operation per update."""
    return c.elements_in(2)


@flops("XlaSelectAndScatter")
def select_and_scatter(c: CostContext) -> int:
    """A comparison per element of the operand, at least, and an operation per element of the source."""
    return c.elements_in() + c.elements_in(4)


@flops("XlaVariadicSort")
def sort(c: CostContext) -> int:
    """n log2(n) comparisons, of the elements of one array."""
    count = c.elements_in()
    return count * max(count - 1, 0).bit_length()


@products("XlaDot", "XlaDotV2")
def dot_product(c: CostContext) -> Product:
    """As many products as there are batches."""
    numbers, left = dot_numbers(c.attrs["dimension_numbers"]), c.inputs[0]
    batch = prod(left[axis] for axis in numbers.left_batch)
    k = prod(left[axis] for axis in numbers.left_contracted)
    m = c.elements_in() // max(batch * k, 1)
    return Product(m, c.elements_out() // max(batch * m, 1), k, batch)


@flops("XlaDot", "XlaDotV2", matrix="product")
def dot(c: CostContext) -> int:
    """2k for each element of the result."""
    numbers = dot_numbers(c.attrs["dimension_numbers"])
    return 2 * c.elements_out() * prod(c.inputs[0][axis] for axis in numbers.left_contracted)


@flops("XlaConv", "XlaConvV2", matrix="convolution")
def conv(c: CostContext) -> int:
    """2 for each cell and channel of the window at each element of the result."""
    features = conv_numbers(c.attrs["dimension_numbers"]).window[0]
    return 2 * c.elements_out() * (c.elements_in(1) // max(c.inputs[1][features], 1))


@flops("XlaKeyValueSort", "XlaSort")
def sort_keys(c: CostContext) -> int:
    """n log2(n) comparisons of the keys."""
    count = c.elements_in()
    return count * max(count - 1, 0).bit_length()


@flops("XlaRngBitGenerator")
def random_bits(c: CostContext) -> int:
    """25 operations per word of Philox 4x32-10, as of other random numbers."""
    return 25 * c.elements_out(1)


@flops("XlaReducePrecision")
def reduced_precision(c: CostContext) -> int:
    """A sum and two masks per element."""
    return 3 * c.elements_out()


@flops("XlaSelfAdjointEig")
def eigenvalues(c: CostContext) -> int:
    """9 * n**3 per matrix (Golub and Van Loan, section 8.3)."""
    return 9 * c.elements_in() * c.inputs[0][-1]


@flops("XlaSvd")
def singular_values(c: CostContext) -> int:
    """21 * n**3 of a square matrix, with both bases (Golub and Van Loan, figure 8.6.1)."""
    return 21 * c.elements_in() * min(c.inputs[0][-2:])
