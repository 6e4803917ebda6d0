"""The API server's double."""

from tests.doubles.kubernetes.fixtures import *  # noqa: F403  # fixtures are found by their names in this module
