"""All families of gradients: importing this module, which the registry does when first asked, registers them."""

from __future__ import annotations

from . import activation as activation
from . import basic as basic
from . import binary as binary
from . import complex_parts as complex_parts
from . import control_flow as control_flow
from . import conv as conv
from . import decompositions as decompositions
from . import einsum as einsum
from . import flat_ops as flat_ops
from . import fourier as fourier
from . import gather as gather
from . import image as image
from . import layout as layout
from . import linalg as linalg
from . import matmul as matmul
from . import norm as norm
from . import pool as pool
from . import quantization as quantization
from . import reduction as reduction
from . import segment as segment
from . import slicing as slicing
from . import softmax as softmax
from . import sparse as sparse
from . import special as special
from . import tensor_arrays as tensor_arrays
from . import tensor_lists as tensor_lists
from . import tridiagonal as tridiagonal
from . import unary as unary
