"""`partita run`: the values, and the simulated time, of a step.

Errors that can be known before the run are ConfigurationErrors; an error of the run itself is raised as it is. Values
are printed and written before an error of the simulation is raised.

The simulation comes first, because it may lack something that only a run tells: how often a loop runs, a branch, a
shape. Then the last step is traced, which makes it many times slower, and simulated with its trace.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path

from ...actors import RunMetadata, RunOptions, Session, open_session
from ...actors.sessions.saved_model import make_ready
from ...devices.timing import Timeline
from ...errors import InvalidArgumentError, PartitaError, RequestError
from ...graph import ConfigProto, Graph, Progress
from ...graph.dtypes import Array
from .costs import check_costs
from .failure import ConfigurationError, configuring, one_line
from .feeds import write_values
from .missing import placing
from .reporting.step_outputs import StepOutputs
from .request import Loaded, Request, check_fed, read, resolve
from .screen import Screen, of_nodes, value_record, value_text
from .simulate import show, simulated, summary


async def run(request: Request, steps: int, out: Path | None, outputs: StepOutputs, as_json: bool) -> None:
    """Runs `steps` steps of the request and prints the values of the last one."""
    screen = Screen()
    outputs.check(request.files(), {"--out": out})
    check_costs(request)
    inputs = read(request, screen)
    async with AsyncExitStack() as stack:
        with (
            screen.working("importing", inputs.graph.nodes, "nodes") as on_progress,
            placing(request, inputs.cluster, inputs.graph.devices, f"graph {str(request.graph)!r}"),
        ):
            opening = open_session(
                inputs.graph.data,
                inputs.cluster,
                config=ConfigProto(allow_soft_placement=request.soft_placement),
                passes=request.all_passes,
                on_progress=on_progress,
            )
            session = await stack.enter_async_context(opening)
        loaded = resolve(inputs, session.graph)
        if out is not None and not loaded.fetches:
            raise ConfigurationError("--out: nothing is fetched; add --fetch NAME")
        values = loaded.values()
        if inputs.saved is not None:
            with screen.working("restoring variables"):
                await make_ready(session, inputs.saved)
        parts = await _prepare(session, loaded, screen)
        result = _attempt(loaded, parts, screen)
        record = RunMetadata() if isinstance(result, InvalidArgumentError) else None
        fetched = await _run(session, loaded, values, steps, record, screen)
    if not as_json:
        _print(fetched, loaded.targets, steps, screen)
    if out is not None:
        write_values(out, fetched)
    if record is not None and record.HasField("step_stats"):
        result = _attempt(loaded, parts, screen, record)
    timeline, why_none = _simulated(result, outputs)
    if timeline is not None:
        outputs.write(timeline, parts, request.graph.name, screen)
    if as_json:
        screen.json(_document(fetched, loaded, steps, timeline, why_none))
    elif timeline is not None:
        show(timeline, loaded.cluster, screen)
        outputs.say(screen)
    else:
        screen.line(f"simulated step time: none ({why_none})")


async def _prepare(session: Session, loaded: Loaded, screen: Screen) -> Mapping[str, Graph]:
    """Cuts and compiles the request; returns its partition graphs. ConfigurationError for an unfed placeholder."""
    with screen.working(f"cutting and compiling {of_nodes(loaded.graph)}"), configuring():
        # In a thread, so that Ctrl-C can end it.
        prepared = await session.prepare_in_thread(tuple(loaded.feeds), loaded.fetches, loaded.targets)
        parts = prepared.partitions
        check_fed(parts.values())
        return parts


async def _run(
    session: Session,
    loaded: Loaded,
    values: Mapping[str, Array],
    steps: int,
    record: RunMetadata | None,
    screen: Screen,
) -> dict[str, Array]:
    """The values that the last step fetched, by name; it is traced if there is a record for the trace."""
    fetched: list[Array] = []
    traced = RunOptions(trace_level=RunOptions.FULL_TRACE), record
    with screen.working("running", steps, "steps") as on_progress:
        for number in range(steps):
            how = traced if record is not None and number == steps - 1 else ()
            fetched = await session.run(loaded.fetches, values, loaded.targets, *how)
            on_progress(Progress("running", number + 1, steps, "steps"))
    return dict(zip(loaded.names, fetched, strict=True))


def _attempt(
    loaded: Loaded, parts: Mapping[str, Graph], screen: Screen, record: RunMetadata | None = None
) -> Timeline | PartitaError:
    """The timeline of the step, or why there is none; ConfigurationError for a file of costs that cannot be used."""
    try:
        return simulated(loaded, parts, screen, record)
    except ConfigurationError:
        raise
    except PartitaError as error:
        return error


def _simulated(result: Timeline | PartitaError, outputs: StepOutputs) -> tuple[Timeline | None, str | None]:
    """The timeline of the step; or None and the reason: the step takes 0 ns, or has nodes that cannot be timed.

    Where the timeline is to be written that is an error.
    """
    if isinstance(result, PartitaError):
        if outputs.given or not isinstance(result, RequestError):
            raise result
        return None, one_line(result)
    return result, None


def _document(
    fetched: Mapping[str, Array], loaded: Loaded, steps: int, timeline: Timeline | None, why_none: str | None
) -> dict[str, object]:
    """The object that `run --json` prints."""
    return {
        "steps": steps,
        "fetches": [value_record(name, value) for name, value in fetched.items()],
        "targets": list(loaded.targets),
        "simulated": None if timeline is None else summary(timeline, loaded.cluster),
        "why_not_simulated": why_none,
    }


def _print(fetched: dict[str, Array], targets: tuple[str, ...], steps: int, screen: Screen) -> None:
    ran = f", {_number(len(targets), 'target')} run" if targets else ""
    screen.line(f"{_number(steps, 'step')}, {_number(len(fetched), 'value')} fetched{ran}")
    values, others = screen.some(list(fetched.items()))
    for name, value in values:
        screen.line(f"  {name}  {value_text(value)}")
    if others:
        screen.line(f"  {others}; so has the file of --out")
    screen.line()


def _number(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
