"""The API server's double."""

from tests.kubernetes_lease.fixtures import *  # noqa: F403  # fixtures are found by their names in this module
