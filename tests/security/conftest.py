"""The application with its doubles, as the tests of the API have it."""

from tests.api.conftest import app, client, world

__all__ = ["app", "client", "world"]
