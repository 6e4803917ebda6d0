"""How random tests run: on a shared machine there is no time limit for one example, and a failure prints its blob."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "shared", deadline=None, print_blob=True, max_examples=100, suppress_health_check=[HealthCheck.too_slow]
)


def load_profile() -> None:
    """Every room with random tests calls it from its conftest."""
    settings.load_profile("shared")
