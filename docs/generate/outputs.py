"""All generated pages, by their path."""

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


def outputs() -> dict[Path, str]:
    return {DOCS / name: make() for name, make in PAGES.items()}


def stale() -> list[str]:
    """The generated pages that differ from what the code gives now, by their name in ``docs/``."""
    return [
        str(path.relative_to(DOCS))
        for path, text in outputs().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
