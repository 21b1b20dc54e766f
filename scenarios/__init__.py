"""Why a run is made: the command line, workloads and reports. Imports nothing, so that `--help` stays quick."""
