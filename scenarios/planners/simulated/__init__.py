"""The built graph of a plan on the simulated cluster, with the numbers of the closed form: a check of its best.

    simulated_step_ms(step, split, cluster)             one split
    with_simulated(step, estimates, cluster, count=3)   the first estimates of a plan, with `simulated_step_ms`

weights.py     which ops of a graph work on weights, by shapes and types
kernels.py     TrainingKernels: costs of ops as a training framework runs them
machine.py     the cluster with the rates and launches that steps reach
exchanges.py   the bytes of collectives of gradients and parameters
step.py        simulated_step_ms
"""
