"""Kernels on numpy, one module a family; importing this package registers them all."""

from __future__ import annotations

from . import activation as activation
from . import basic as basic
from . import bias as bias
from . import binary as binary
from . import conv as conv
from . import counting as counting
from . import diagonals as diagonals
from . import division as division
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
from . import random_ops as random_ops
from . import reduction as reduction
from . import reversing as reversing
from . import scan as scan
from . import scatter as scatter
from . import segment as segment
from . import select as select
from . import selection as selection
from . import sets as sets
from . import shape_ops as shape_ops
from . import slicing as slicing
from . import softmax as softmax
from . import solvers as solvers
from . import special as special
from . import unary as unary
from . import variable_scatter as variable_scatter
from . import variables as variables
