"""Replays a recording, and reports whether the core decides the same again."""

import json
from typing import Any

import typer
from rich.text import Text

from hascheduler.cli.output.console import console
from hascheduler.dispatch.decisions import Decision, encode_decisions
from hascheduler.dispatch.recording import RecordingHeading, read_recording
from hascheduler.model.instants import format_instant
from hascheduler.model.policy import policy_name
from hascheduler.simulate.replay import Replayed, replay

_SHOWN_MAX = 5


def show_replay(text: str, *, as_json: bool) -> None:
    """Exits with status 1 where the replay decides something else."""
    heading, steps = read_recording(text.splitlines())
    replayed = replay(heading, steps)
    if as_json:
        typer.echo(json.dumps(_document(heading, replayed)))
    else:
        console().print(_summary(heading, replayed))
    if replayed.difference is not None:
        raise typer.Exit(1)


def _summary(heading: RecordingHeading, replayed: Replayed) -> Text:
    policy = policy_name(heading.config.policy.criteria)
    text = Text(f"{heading.replica}, term {heading.term}, from {format_instant(heading.at_ms)} on; {policy}\n", "dim")
    difference = replayed.difference
    if difference is None:
        end = "it was cut off" if replayed.end is None else replayed.end
        summary = f"{replayed.decisions} decisions in {replayed.steps} steps, and all are the same   ({end})"
        return text.append(summary, "not dim green")
    text.append(f"step {difference.step}, at {format_instant(difference.now)}, is another\n", "not dim red")
    text.append(f"recorded  {_few(difference.recorded)}\nreplayed  {_few(difference.replayed)}\n", "not dim")
    return text.append(f"{replayed.decisions} decisions before it are the same", "not dim")


def _few(decisions: tuple[Decision, ...]) -> str:
    shown = [" ".join(str(value) for value in row[:4]) for row in encode_decisions(decisions[:_SHOWN_MAX])]
    more = [f"and {len(decisions) - _SHOWN_MAX} more"] if len(decisions) > _SHOWN_MAX else []
    return "; ".join([*shown, *more]) or "nothing"


def _document(heading: RecordingHeading, replayed: Replayed) -> dict[str, Any]:
    difference = replayed.difference
    return {
        "replica": heading.replica,
        "term": heading.term,
        "steps": replayed.steps,
        "decisions": replayed.decisions,
        "end": replayed.end,
        "identical": difference is None,
        "difference": None
        if difference is None
        else {
            "step": difference.step,
            "at": format_instant(difference.now),
            "recorded": encode_decisions(difference.recorded),
            "replayed": encode_decisions(difference.replayed),
        },
    }
