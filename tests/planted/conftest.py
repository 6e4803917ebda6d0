"""The backends that these suites run on."""

from tests.contract.fixtures import *  # noqa: F403  # fixtures are found by their names in this module
