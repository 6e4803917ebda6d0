"""The authorities, as the tests of the certificates have them."""

from tests.unit.tls.certificates import no_sockets_left_over
from tests.unit.tls.conftest import authority, stranger

__all__ = ["authority", "no_sockets_left_over", "stranger"]
