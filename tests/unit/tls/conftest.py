"""An authority of the session's own, and one that nobody trusts."""

import gc
import warnings
from collections.abc import Iterator

import pytest

from tests.unit.tls.certificates import Authority


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="session")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("stranger"))


@pytest.fixture(autouse=True)
def no_sockets_left_over() -> Iterator[None]:
    """MongoDB's driver leaves the socket of a handshake that failed to the garbage collection: have that done here,
    where it is to be expected, and not in whatever test comes later."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
