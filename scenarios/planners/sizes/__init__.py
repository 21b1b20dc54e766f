"""What a rank has of a model, in columns over splits: sizes of layers, rows and heads, parameters, layers of stages.

shapes.py      the sizes of a model's layers, whichever family it is of
shares.py      rows, heads and shards of a rank
parameters.py  parameters of a rank by part of a layer
stages.py      layers of each kind of pipeline rank
weights.py     parameters of a rank by kind of layer, and of the pipeline rank with most
"""
