"""All families of costs; importing this module registers them."""

from __future__ import annotations

from .arrays import arrays_costs as arrays_costs
from .control import control_costs as control_costs
from .elementwise import elementwise_costs as elementwise_costs
from .linalg import linalg_costs as linalg_costs
from .nn import bias_costs as bias_costs
from .nn import conv_costs as conv_costs
from .nn import norm_costs as norm_costs
from .nn import pool_costs as pool_costs
from .nn import softmax_costs as softmax_costs
from .reductions import reductions_costs as reductions_costs
from .sparse import sparse_costs as sparse_costs
from .training import training_costs as training_costs
from .variables import variables_costs as variables_costs
