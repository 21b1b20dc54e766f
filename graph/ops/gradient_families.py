"""All families of gradients: importing this module, which the registry does when first asked, registers them."""

from __future__ import annotations

from . import flat_ops as flat_ops
from .arrays import gather_gradients as gather_gradients
from .arrays import layout_gradients as layout_gradients
from .arrays import slicing_gradients as slicing_gradients
from .control import basic_gradients as basic_gradients
from .control import control_flow_gradients as control_flow_gradients
from .elementwise import binary_gradients as binary_gradients
from .elementwise import complex_parts_gradients as complex_parts_gradients
from .elementwise import special_gradients as special_gradients
from .elementwise import unary_gradients as unary_gradients
from .images import images_gradients as images_gradients
from .linalg import decompositions_gradients as decompositions_gradients
from .linalg import einsum_gradients as einsum_gradients
from .linalg import fourier_gradients as fourier_gradients
from .linalg import linalg_gradients as linalg_gradients
from .linalg import matmul_gradients as matmul_gradients
from .linalg import tridiagonal_gradients as tridiagonal_gradients
from .lists import lists_gradients as lists_gradients
from .lists import tensor_array_ops_gradients as tensor_array_ops_gradients
from .nn import activation_gradients as activation_gradients
from .nn import conv_gradients as conv_gradients
from .nn import norm_gradients as norm_gradients
from .nn import pool_gradients as pool_gradients
from .nn import softmax_gradients as softmax_gradients
from .quantized import quantized_gradients as quantized_gradients
from .reductions import reduction_gradients as reduction_gradients
from .reductions import segment_gradients as segment_gradients
from .sparse import sparse_gradients as sparse_gradients
