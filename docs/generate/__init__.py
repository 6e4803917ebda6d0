"""The generated pages of this folder, from the code itself.

::

    Settings ───────────────► reference/settings.md
    the command table ──────► reference/cli.md
    OpenAPI, routes ────────┐
    calls that make problems┴► reference/http.md
    metric registries ──────► reference/metrics.md
    TRANSITIONS, Verdict ───┐
    EventType, Event ───────┼► reference/states.md
    Criterion, PRESETS ─────┘
    the alert rules ────────► operations/runbooks.md

The same code gives the same bytes, so a test can compare. ``python -m docs.generate`` writes the pages,
``python -m docs.generate --check`` names those that are stale and exits with 1.
"""
