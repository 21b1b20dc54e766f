"""Sweeps: a function, or a command, for each point of some axes; a table with a row for each, in the order of the axes.

sweep.py            sweep(): from axes to a table, by any executor
axes.py             products, lists that go together, and conditions -> points
ranges.py           numbers from one to another
conditions.py       conditions as texts: "tp * pp <= gpus"
functions.py        which functions can be swept, and the hash of their code
points.py           the hash of a point, with the contents of the files that it names
results.py          what a function may return
row_file.py         rows in a file, to go on after an interruption
table.py            SweepTable
table_files.py      writes it as CSV, JSON and Parquet
sweep_file.py       the TOML file of `partita sweep`
flag_axes.py        checks its flags
document_values.py  values of what a command has said, by path
command_points.py   runs its points
"""
