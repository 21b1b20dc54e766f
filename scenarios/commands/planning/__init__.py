"""The command `partita plan`: from its flags to a table, an explanation, and a JSON document.

flags.py        PlanFlags: the flags as texts and numbers, and which exclude each other
given.py        the model and the fits that they name
machines.py     the machines
plan_request.py what is planned: searches and costs with the settings of the flags
command.py      what is planned and printed, in order
answer.py       all that is known before anything is printed
page.py         --report
counts.py       --gpu-counts: the best plan on several numbers of GPUs
changes.py      --what-if: the same plan on faster machines, and the best one there
serving.py      --inference
search_text.py  what was searched, and what is impossible
document.py     the JSON document
next_step.py    the command that builds the graph of a plan
"""
