"""Serving a language model: what a deployment costs per token, in closed form, from the costs of its kernels.

deployment.py      a model on the GPUs of a cluster: how it is spread, in which types, and what fits in memory
passes.py          the kernels of one forward pass, of prompts or of one token a sequence, and their times
rates.py           time to the first token and per further token under a number of requests at a time
frameworks.py      the three numbers of a serving framework, from frameworks.toml
fitting.py         fits these numbers to measured deployments
measured.py        deployments from tables of measurements
serving_set.py     the set `llm_serving` of `partita validate`
"""
