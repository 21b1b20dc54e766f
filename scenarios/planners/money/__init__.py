"""What steps and runs cost: dollars, energy, days, and the time that failures and checkpoints take.

    costs = RunCosts.of(machine, model, tokens=10**12, storage_bytes_per_s=10**11)
    front = pareto_plans(costs.added_to(estimates))       less time or less money, not both

goodput.py     the best time between checkpoints, and the share of time that is then work
run_costs.py   RunCosts: prices, power and failures of a machine -> the money fields of estimates
pareto.py      which of two costs can only be had at each other's expense
"""
