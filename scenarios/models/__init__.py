"""Models as sizes, without a graph: what a family's networks have, how many parameters, and how they may be split.

model = LlamaModel.from_config("config.json")           sizes from a file; or from a row, or by hand
model.parameters, model.flops_per_token(4096)           counted from formulas
split = Split(tp=8, pp=4, dp=2, microbatches=16)
split.check(model, 4096, devices_available=64)          does it divide? what would?

split.py         Split: how a model is spread over devices
split_text.py    "tp=8,pp=4,dp=2" becomes the fields of a split
split_checks.py  whether a split fits a model, a sequence length and a cluster
nearest.py       the sizes nearest to one that does not divide
description.py   what all models say of themselves
rope.py          angles of rotary positions, with their scalings
gpt, llama, moe, bert, vit, dlrm      a family each: its class, and the fields of config.json that it knows
fields.py        reads a config.json by a family's rules; refuses what changes the mathematics
families.py      the family of a config.json by its model_type
rows.py          sizes from a row of a table of models
"""
