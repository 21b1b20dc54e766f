"""Passes that make the training step of one device parallel, or smaller in memory.

    training_step     what a step consists of: forward, backward, updates, and the gradients between them
    replicate         a replica per device, gradients reduced over all of them; replicas/ has its parts
    zero/             shards of state, gradients and parameters in place of copies
    pipeline          stages on devices, micro-batches through them by a schedule; pipelines/ has its parts
    recompute         activations computed again before their gradients
    batch_size        graphs that were made for one size of the batch, for another one

Every replica gets a program of its own, a copy of the graph of one device. What it shares with the others goes through
collectives. Passes compose: recompute, then pipeline, then replicate.
"""
