"""The application with its doubles, as the tests of the API have it."""

from tests.unit.api.conftest import app, client, guarded, world

__all__ = ["app", "client", "guarded", "world"]
