from tests.unit.cli.conftest import *  # noqa: F403  # fixtures are found by their names in this module
