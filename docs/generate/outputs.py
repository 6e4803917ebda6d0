"""All generated pages, and what the dashboard shows of them, by their path."""

from pathlib import Path

from docs.generate import cli, events, http, job_states, metrics, policies, problems, runbooks, settings

DOCS = Path(__file__).parents[1]
PAGES = {
    "reference/settings.md": settings.page,
    "reference/cli.md": cli.page,
    "reference/http.md": http.page,
    "reference/http-bodies.md": http.bodies_page,
    "reference/problems.md": problems.page,
    "reference/metrics.md": metrics.page,
    "reference/events.md": events.page,
    "reference/job-states.md": job_states.page,
    "reference/policies.md": policies.page,
    "operations/runbooks.md": runbooks.page,
}


STATIC = DOCS.parent / "hascheduler" / "api" / "ui" / "static"


def outputs() -> dict[Path, str]:
    return {DOCS / name: make() for name, make in PAGES.items()} | {STATIC / "runbooks.json": runbooks.asset()}


def stale() -> list[str]:
    """The generated pages that differ from what the code gives now, by their path."""
    return [
        str(path.relative_to(DOCS.parent))
        for path, text in outputs().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
