"""The random tests of this room run under the shared profile."""

from tests.chance import load_profile

load_profile()
