"""Where the API server is, and who we are there: from a pod's environment and its service account."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hascheduler.errors import InvalidInput
from hascheduler.tls import PemFile

HOST, PORT = "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"
SERVICE_ACCOUNT = "HASCHEDULER_SERVICE_ACCOUNT_DIR"
NAMESPACE = "HASCHEDULER_LEASE_NAMESPACE"


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """``token`` is a file, as its content changes every hour or so."""

    url: str
    namespace: str
    token: Path
    authorities: PemFile

    def bearer(self) -> str:
        """The token of this moment; `OSError` or `ValueError` where there is none."""
        return self.token.read_text(encoding="ascii").strip()


def in_cluster(environment: Mapping[str, str], service_account: str, namespace: str = "") -> ClusterAccess:
    """The access of a pod, with the files of the folder ``service_account``; in the pod's own namespace, or that one.

    `InvalidInput` where this is no pod, or one without a token.
    """
    host = environment.get(HOST, "")
    if not host:
        raise InvalidInput((HOST,), "is not set", "to run in a pod, or HASCHEDULER_LEASE_STORE=mongodb")
    address = f"[{host}]" if ":" in host else host
    folder = Path(service_account)
    access = ClusterAccess(
        url=f"https://{address}:{environment.get(PORT) or '443'}",
        namespace=namespace or _read(NAMESPACE, folder / "namespace", "the namespace's name, or a file that holds it"),
        token=folder / "token",
        authorities=PemFile(SERVICE_ACCOUNT, str(folder / "ca.crt")),
    )
    _read(SERVICE_ACCOUNT, access.token, "a folder with a token: automountServiceAccountToken: true mounts it")
    return access


def _read(setting: str, file: Path, expected: str) -> str:
    try:
        found = file.read_text(encoding="ascii").strip()
    except OSError as error:
        raise InvalidInput((setting,), f"{file}: {error.strerror}", expected) from None
    except ValueError:
        found = ""
    if not found:
        raise InvalidInput((setting,), f"{file}: holds nothing that is of use", expected)
    return found
