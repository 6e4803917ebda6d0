"""The certificates of a server, loaded again when their files change."""

import asyncio

import structlog

from hascheduler.errors import InvalidInput
from hascheduler.tls import PemFile, load_own, load_trusted, server_context

log = structlog.get_logger(__name__)

_CHECK_EVERY_S = 5.0


class ServedCertificates:
    """Owner of a server's ``context``; `renew` brings it up to date with its files.

    Both its creation and `renew` raise `InvalidInput` if a file can't be used, and `renew` then changes nothing.
    """

    def __init__(self, cert: PemFile, key: PemFile, client_ca: PemFile) -> None:
        self._files = (cert, key, client_ca)
        self._marks = self._seen()
        self.context = server_context(cert, key, client_ca)

    def renew(self) -> bool:
        """Load the files, and return True if they changed.

        Connections go on with their old certificates. Authorities of clients are added and not removed: for that the
        process must restart.
        """
        marks = self._seen()
        if marks == self._marks:
            return False
        cert, key, client_ca = self._files
        # In a new context first: if the certificate and the key do not match, one of them would already be in use.
        server_context(cert, key, client_ca)
        load_own(self.context, cert, key)
        if client_ca:
            load_trusted(self.context, client_ca)
        self._marks = marks
        return True

    async def keep_fresh(self, every_s: float = _CHECK_EVERY_S) -> None:
        """Load files that have changed, until cancelled.

        Unusable files are logged once, and tried again when they have changed.
        """
        refused: tuple[tuple[int, ...], ...] | None = None
        while True:
            await asyncio.sleep(every_s)
            marks = self._seen()
            if marks == refused:
                continue
            try:
                if self.renew():
                    log.info("certificates_renewed")
                refused = None
            except InvalidInput as error:
                refused = marks
                log.error("certificates_renewal_failed", error=str(error))

    def _seen(self) -> tuple[tuple[int, ...], ...]:
        return tuple(file.mark for file in self._files)
