"""The command `partita plan`: from its flags to a table, an explanation, and a JSON document.

flags.py        PlanFlags: the flags as texts and numbers, and which exclude each other
given.py        the model and the fits that they name
machines.py     the machines
plan_request.py what is planned: searches and costs with the settings of the flags
command.py      what is planned and printed, in order
counts.py       --gpu-counts: the best plan on several numbers of GPUs
changes.py      --what-if: the same plan on faster machines, and the best one there
serving.py      --inference
table.py        the first plans, a row each
explanation.py  where the time and the memory of a plan go, and how sure that is
search_text.py  what was searched, and what is impossible
document.py     the JSON document
next_step.py    the command that builds the graph of a plan
"""
