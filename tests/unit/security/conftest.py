"""The application with its doubles, as the tests of the API have it."""

from tests.unit.api.conftest import acme, app, boss, client, guarded, other, world

__all__ = ["acme", "app", "boss", "client", "guarded", "other", "world"]
