"""The life of a job and the verdicts of nominal times, from their tables."""

import inspect

from docs.generate.markdown import code, fenced, table
from hascheduler.model import verdict
from hascheduler.model.job import TERMINAL, TRANSITIONS, JobState

_INTRO = """\
## The life of a job

The stores build the filters of their compare-and-set writes from this table, so no other move is possible. The attempt
number is the fencing token: a processor that starts, reports on or finishes an attempt names it, and an old number
changes nothing.
"""
_PICTURE = """\
              claim                start             finish
  pending ─────────────▶ dispatched ────▶ running ─────────────▶ succeeded, failed
     ▲ ▲                     │             │   │
     │ └─────────────────────┴─────────────┘   └─ stop ─────────▶ cancelled
     │     give_back, requeue; recall (dispatched); retry (running)
     │
     └─ revive ── failed, cancelled

  cancel: pending or dispatched ─▶ cancelled
  fail:   pending, dispatched or running ─▶ failed
"""


def section() -> str:
    moves = (
        (code(row.move.value), _states(row.sources), _states(row.targets), row.who, row.guard)
        for row in TRANSITIONS.values()
    )
    verdicts = inspect.getdoc(verdict) or ""
    return "\n".join(
        (
            _INTRO,
            fenced(_PICTURE),
            f"Terminal: {_states(TERMINAL)}.\n",
            table(("move", "from", "to", "made by", "guarded by"), moves),
            "## Verdicts\n",
            "Every nominal time of a schedule gets exactly one verdict.\n",
            fenced(_listing(verdicts)),
        )
    )


def _states(states: frozenset[JobState]) -> str:
    return ", ".join(code(state.value) for state in JobState if state in states)


def _listing(docstring: str) -> str:
    """Return the indented list of a docstring, which must have a line for each verdict."""
    lines = [line[4:] for line in docstring.splitlines() if line.startswith("    ")]
    named = {line.split()[0] for line in lines if not line.startswith(" ")}
    missing = {each.value for each in verdict.Verdict} - named
    assert not missing, f"the docstring of the verdicts leaves out {missing}"
    return "\n".join(lines)
