"""ZeRO and FSDP: what each of several replicas would have is shared out among them.

    layout        how a tensor is cut, and who has which part       region     what of a step works on shards
    collectives   nodes by which shards become wholes, and back     shards     shards and wholes on demand
    state         variables of shards                               updates    the nodes between gradients and updates
    readers       who computes with parameters, gathers when        units      parameters that are gathered together
    outside       savers and fetches                                edits      changes of a graph
    step          the rewriting of a step                           replicas   as part of a replication
"""
