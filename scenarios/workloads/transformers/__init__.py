"""Transformers and recommenders as rank programs: a file a family, and the blocks that they share.

network         where a layer is, and what a rank has of the rows, the sequence and the weights
products        products whose weights are split over ranks, and the exchanges in front of and behind them
sequence        which tokens a rank has, and where
norms, rotary, feed_forward, embedding, loss
attention       projections to heads and back; attention_core, exchanged_heads and ring compute what is between
forward         the forward pass of a model, by its family
"""
