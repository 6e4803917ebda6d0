"""All generated pages, and what the dashboard shows of them, by their path."""

from pathlib import Path

from docs.generate import cli, events, http, job_states, metrics, policies, runbooks, settings
from docs.generate.markdown import head
from hascheduler.api.app import DESCRIPTION

DOCS = Path(__file__).parents[1]


def states_page() -> str:
    sections = (job_states.section(), events.section(), policies.section())
    intro = "The values that the API, the commands and the dashboard show.\n"
    return "\n".join((head("States, verdicts, events and criteria", "hascheduler/model", intro), *sections))


PAGES = {
    "reference/settings.md": settings.page,
    "reference/cli.md": cli.page,
    "reference/http.md": http.page,
    "reference/metrics.md": metrics.page,
    "reference/states.md": states_page,
    "operations/runbooks.md": runbooks.page,
}


API = DOCS.parent / "hascheduler" / "api"
STATIC = API / "ui" / "static"


def outputs() -> dict[Path, str]:
    pages = {DOCS / name: make() for name, make in PAGES.items()}
    return pages | {STATIC / "runbooks.json": runbooks.asset(), API / DESCRIPTION: http.description()}


def stale() -> list[str]:
    """Return the paths of generated pages that differ from what the code gives now."""
    return [
        str(path.relative_to(DOCS.parent))
        for path, text in outputs().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
