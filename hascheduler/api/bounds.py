"""How large what is asked for may be, where more than one noun has such a bound."""

from pydantic import AfterValidator

from hascheduler.api.texts import wrong
from hascheduler.model.durations import format_duration

JOBS_MAX = 1_000_000
"""Of what counts jobs that run at once."""
WEEK_MS = 7 * 86_400_000


def between(least_ms: int, most_ms: int) -> AfterValidator:
    """Refuses a span outside of the two."""

    def check(span_ms: int) -> int:
        if not least_ms <= span_ms <= most_ms:
            raise wrong(
                f"{format_duration(span_ms)} is out of range",
                f"{format_duration(least_ms)} to {format_duration(most_ms)}",
            )
        return span_ms

    return AfterValidator(check)
