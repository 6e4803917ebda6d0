"""Who takes part: this scheduler, and its peers as far as they can do a workload."""

from dataclasses import dataclass
from pathlib import Path

_HERE = Path(__file__).parent
WORKLOADS = ("throughput", "fires", "failover")
OURS = "hascheduler"


@dataclass(frozen=True, slots=True)
class Peer:
    """How its program is used. ``workers`` are instances of role ``work``.

    ``submitters`` are instances of role ``submit``, each with its share of the jobs; where they ``also_work``, no
    others do while jobs are submitted. With ``schedules_first`` workers start when the schedules have been made.
    """

    name: str
    package: str
    keeps: str
    server: str
    workloads: tuple[str, ...]
    workers: int
    submitters: int = 1
    also_work: bool = False
    schedules_first: bool = False

    @property
    def folder(self) -> Path:
        return _HERE / self.name

    @property
    def program(self) -> Path:
        """In Python, or in JavaScript."""
        return next(self.folder.glob("program.*"))


PEERS = {
    peer.name: peer
    for peer in (
        Peer("agenda", "agenda", "durable state", "mongodb", WORKLOADS, workers=2, schedules_first=True),
        Peer(
            "apscheduler4", "apscheduler", "durable state", "mongodb", WORKLOADS,
            workers=2, submitters=2, also_work=True, schedules_first=True,
        ),
        Peer("celery5", "celery", "broker only", "rabbitmq", ("throughput", "fires"), workers=1),
        Peer("taskiq", "taskiq", "broker only", "rabbitmq", ("throughput", "fires"), workers=1),
    )
}  # fmt: skip
SYSTEMS = (OURS, *PEERS)
