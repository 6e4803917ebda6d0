"""What this replica sees of the whole, for people: read from its mirror, never from the database."""

from collections import Counter

from hascheduler.daemon.config import ReplicaConfig
from hascheduler.daemon.feeder import Feeder
from hascheduler.daemon.leader import Leader
from hascheduler.daemon.presence import Presence
from hascheduler.daemon.stepper import Stepper
from hascheduler.dispatch.dispatcher import Dispatcher
from hascheduler.model.documents import Collection
from hascheduler.ports import Clock, Cluster

_QUARANTINE_SHOWN_MAX = 100
_WEDGED_AFTER_MS = 60_000


class ReplicaView:
    """Implements `ports.ClusterView`."""

    def __init__(
        self,
        config: ReplicaConfig,
        *,
        feeder: Feeder,
        presence: Presence,
        leader: Leader,
        stepper: Stepper,
        core: Dispatcher,
        clock: Clock,
    ) -> None:
        self._config = config
        self._feeder = feeder
        self._presence = presence
        self._leader = leader
        self._stepper = stepper
        self._core = core
        self._clock = clock

    @property
    def ready(self) -> bool:
        return not self.unready_reason

    @property
    def unready_reason(self) -> str:
        if not self._feeder.complete:
            return "the mirror is not complete yet"
        if not self._presence.fresh:
            return "the change stream has been silent for too long"
        return ""

    @property
    def alive(self) -> bool:
        return self._clock.mono_ms() - self._stepper.turned_at_ms < _WEDGED_AFTER_MS

    def cluster(self) -> Cluster:
        mirror = self._feeder.mirror
        states = Counter(job.state.value for job in mirror.nouns(Collection.JOBS).values())
        processors = mirror.nouns(Collection.PROCESSORS)
        return Cluster(
            replica_id=self._config.replica_id,
            lease=self._leader.lease,
            journal=mirror.journal_head(self._config.shard),
            leading=self._leader.leading,
            ready=self.ready,
            replicas=[replica for _, replica in sorted(mirror.nouns(Collection.REPLICAS).items())],
            processors=[
                (processor, self._core.occupied(id), self._core.is_live(id))
                for id, processor in sorted(processors.items())
            ],
            counts={
                "schedules": len(mirror.nouns(Collection.SCHEDULES)),
                "definitions": len(mirror.nouns(Collection.DEFINITIONS)),
                "pending": states["pending"],
                "dispatched": states["dispatched"],
                "running": states["running"],
            },
            quarantine=[
                (str(collection), id, reason)
                for (collection, id), reason in reversed(self._unreadable()[-_QUARANTINE_SHOWN_MAX:])
            ],
            stream_lag_ms=self._presence.lag_ms,
            position=self._feeder.position,
            digest=mirror.digest,
        )

    def _unreadable(self) -> list[tuple[tuple[Collection, str], str]]:
        """The documents that the mirror set aside, and the schedules whose times the core can't tell."""
        never_firing = self._core.unreadable_schedules.items()
        found = [((Collection.SCHEDULES, name), reason) for name, reason in never_firing]
        return [*found, *self._feeder.mirror.quarantine.items()]
