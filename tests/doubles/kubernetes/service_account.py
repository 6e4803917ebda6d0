"""What a pod finds of its service account: a folder with a token, the authority's certificate and a namespace."""

from pathlib import Path

from hascheduler.kubernetes.api import HOST, PORT, ClusterAccess, in_cluster
from tests.doubles.kubernetes.api_server import ApiServerDouble
from tests.unit.tls.certificates import Authority

NAMESPACE = "hascheduler"


class ServiceAccount:
    """Owner of the folder."""

    def __init__(self, folder: Path, authority: Authority, token: str = "the-first-token") -> None:
        self.folder = folder
        folder.mkdir()
        self.trust(authority)
        self.rotate(token)
        (folder / "namespace").write_text(NAMESPACE)

    def trust(self, authority: Authority) -> None:
        (self.folder / "ca.crt").write_bytes(Path(authority.cert).read_bytes())

    def rotate(self, token: str) -> None:
        """As the kubelet does: the file is another one, in one step."""
        fresh = self.folder / ".token"
        fresh.write_text(token)
        fresh.rename(self.folder / "token")

    def environment(self, double: ApiServerDouble) -> dict[str, str]:
        return {
            HOST: "127.0.0.1",
            PORT: str(double.port),
            "HASCHEDULER_LEASE_STORE": "kubernetes",
            "HASCHEDULER_SERVICE_ACCOUNT_DIR": str(self.folder),
        }

    def access(self, double: ApiServerDouble) -> ClusterAccess:
        return in_cluster(self.environment(double), str(self.folder))
