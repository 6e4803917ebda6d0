"""How random tests run: on a shared machine there is no time limit for one example, and a failure prints its blob."""

from hypothesis import HealthCheck, settings

from tests.tiers import examples

settings.register_profile(
    "shared", deadline=None, print_blob=True, max_examples=examples(100), suppress_health_check=[HealthCheck.too_slow]
)


def load_profile() -> None:
    """`tests.conftest` calls it, for all random tests."""
    settings.load_profile("shared")
