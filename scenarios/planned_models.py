"""The families of models that `partita plan` knows, and the sizes that it has flags for, with their help.

Apart from the families themselves, as help lists them without loading any.
"""

from __future__ import annotations

PLANNED = ("gpt", "llama", "moe")
"""the families of models that have plans, by the names of their workloads"""
SIZES = {
    "layers": "Blocks.",
    "hidden": "Width of the residual stream.",
    "heads": "Query heads of attention.",
    "intermediate": "Units of a feed-forward layer.",
    "vocabulary": "Rows of the embedding.",
    "kv_heads": "Heads of keys and values.  [default: --heads]",
    "head_size": "Elements of a head.  [default: --hidden / --heads]",
    "positions": "Learned positions of gpt.  [default: 1024]",
    "window": "A token sees as many tokens.  [default: all before it]",
    "experts": "Routed experts of a layer of moe.",
    "topk": "Experts that a token is sent to.",
    "expert_intermediate": "Units of a routed expert.",
    "shared_intermediate": "Units of the expert of all tokens.  [default: 0]",
    "dense_layers": "First layers without experts.  [default: 0]",
}
"""the sizes of models that have a flag, with its help; names are those of the fields of the families"""
