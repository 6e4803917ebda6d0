"""The authorities, as the tests of the certificates have them."""

from tests.unit.tls.conftest import authority, no_sockets_left_over, stranger

__all__ = ["authority", "no_sockets_left_over", "stranger"]
