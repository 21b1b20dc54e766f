"""Steps of training that others measured: from rows of tables to steps, splits and machines of the planner.

    lines = TableLines.of(table, table.read(path, may_be_empty=False))
    [[row], ...] = lines.rows()          row.split Split(tp=4, dp=16, ...), row.machine of 64 A100s, row.step_ms 6228.3
    fit_numbers(fit_rows([row, ...]))    what steps on that GPU reach

training_row.py      TrainingRow: one run, and what was measured of it
machines.py          the machines behind the tables
vtrain_tables.py, simumax_table.py, megatron_tables.py      the cells of a line -> its runs
training_tables.py   the tables by name
table_lines.py       the lines of a table as plain values
run_calls.py         runs that one call of the closed form answers
fit_rows.py          runs -> what a fit of numbers needs
predicted_runs.py    runs -> their predictions
null_models.py       what anybody could say of them
training_answers.py  lines to fit to and lines to predict -> predictions
training_sets.py     the sets of `partita validate`
"""
