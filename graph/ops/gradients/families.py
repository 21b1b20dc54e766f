"""All families of gradients: importing this module, which the registry does when first asked, registers them."""

from __future__ import annotations

from . import basic as basic
from . import binary as binary
