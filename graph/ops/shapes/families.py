"""All families of shape functions: importing this module, which the registry does when first asked, registers them."""

from __future__ import annotations

from . import activation as activation
from . import basic as basic
from . import bias as bias
from . import binary as binary
from . import boxes as boxes
from . import checkpoints as checkpoints
from . import colour as colour
from . import conv as conv
from . import ctc as ctc
from . import diagonals as diagonals
from . import dilation as dilation
from . import fake_quant as fake_quant
from . import fourier as fourier
from . import gather as gather
from . import image as image
from . import layout as layout
from . import linalg as linalg
from . import matmul as matmul
from . import norm as norm
from . import optimizers as optimizers
from . import padding as padding
from . import partitioning as partitioning
from . import pool as pool
from . import projection as projection
from . import quantization as quantization
from . import ragged as ragged
from . import random_ops as random_ops
from . import recurrent as recurrent
from . import reduction as reduction
from . import reversing as reversing
from . import scatter as scatter
from . import select as select
from . import selection as selection
from . import sets as sets
from . import shape_ops as shape_ops
from . import slicing as slicing
from . import softmax as softmax
from . import sparse as sparse
from . import special as special
from . import strings as strings
from . import tensor_arrays as tensor_arrays
from . import tensor_lists as tensor_lists
from . import unary as unary
from . import variables as variables
