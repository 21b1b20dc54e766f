"""Models on the clock: representatives against the graph of all ranks, on clusters of small hosts."""

from __future__ import annotations

from random import Random

from partita.devices import cut, parse_cluster
from partita.devices.timing import Timeline, simulate
from partita.errors import InvalidArgumentError, UnimplementedError
from partita.scenarios import build_model
from tests.laws.models.cases import SEQUENCE, ModelCase
from tests.laws.outcomes import REFUSED, Outcome
from tests.laws.representatives.running import difference


def compared(case: ModelCase, seed: int) -> Outcome:
    """Whether representatives of a case have the timeline of all ranks; refused what is no step of alike ranks."""
    gpus = Random(seed).choice((2, 4, 8))
    hosts = max(1, case.split.devices // gpus)
    text = f'[[device]]\njob = "w"\ntasks = {hosts}\nspec = "A100-80GB"\ncount = {gpus}\n'
    cluster = parse_cluster(text if hosts == 1 else f'{text}[[link]]\nbetween = "hosts"\nlink = "100 Gb InfiniBand"')
    length = None if case.model.rows_of(1) == case.model.rows_of(2) else SEQUENCE

    def timeline(*, representatives: bool) -> Timeline:
        step = build_model(
            case.model,
            case.split,
            cluster,
            sequence_length=length,
            fused=case.fused,
            optimizer=case.optimizer,
            local_inputs=True,
            representatives=representatives,
        )
        return simulate(cut(step.graph, cluster, targets=step.targets), cluster)

    try:
        played = timeline(representatives=True)
        return difference(played, timeline(representatives=False), case.split.mesh)
    except (UnimplementedError, InvalidArgumentError) as error:
        return Outcome(REFUSED, error.message)
