"""What the trace of a step tells the clock: how often loops ran, which branches were taken, shapes, times.

turns       how often loops ran and which branches were taken, from iterations or from the order of runs
called      the nodes of functions: their properties, and their runs where TensorFlow called without inlining
facts       all of it for one graph: `read_trace`
shapes      the shapes that the graph alone does not tell
measured    times of the trace in place of those of the cost source
"""
