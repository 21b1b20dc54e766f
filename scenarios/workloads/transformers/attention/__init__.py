"""Attention: from rows of a layer to heads, over the heads' tokens wherever they are, and back.

layer              projections to the rank's heads and from them
latent             the same out of narrow vectors, as in DeepSeek V2 and V3
core               attention over keys that a rank has
exchanged_heads    over the sequence of all ranks of cp, by an exchange of heads
ring               the same, where keys and values go round
key_value_cache    of one token to earlier ones, which variables keep
rotary             positions of queries and keys
"""
