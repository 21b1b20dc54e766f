"""What serving a decoder takes on a cluster: prefill, decode, memory and tokens per second, in closed form.

    plan = search_inference(model, cluster, prompt=2048, output=256, batches=[1, 8, 64], tpot_ms=50)
    plan.plans[0].decode_ms

A step is that of the graph that `build_model` makes for inference, op by op, without the graph: so a simulation of that
graph takes as long (`partita workload llama --inference decode --simulate`). `scenarios/serving` is about serving
frameworks, whose kernels are fewer and are replayed.

rank.py          Phase, Rank: the tokens and the share of the model that a rank has
operations.py    the ops that a rank runs, as a source of costs is asked about them
attention.py     the first half of a layer: attention over keys and values
feed_forward.py  the second half: a dense network, or experts
program.py       embedding, layers and head by pipeline stage
durations.py     their times: launches and kernels, exchanges, intervals
passages.py      a step through all stages
memory.py        weights, keys and values, activations
candidates.py    the layouts and batches of a search, and what is impossible
search.py        memory, then time, then order
refusals.py      errors where nothing fits or is fast enough
plan.py          InferencePlan, InferenceEstimate
"""
