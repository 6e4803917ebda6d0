"""Lease and journal agree on the term, some replica leads, every shard that a processor serves is led, and all replicas
have the same time-zone data."""

from collections.abc import Collection as SomeOf
from collections.abc import Iterable, Iterator

from hascheduler.check.config import CheckConfig
from hascheduler.check.finding import Finding, FindingKind, instant_or_ms
from hascheduler.check.jobs import RegisteredProcessor
from hascheduler.check.journal import DatedHead
from hascheduler.model.lease import LeaseRecord
from hascheduler.model.replica import ReplicaStatus


def check_lease(lease: LeaseRecord, began: DatedHead | None, now: int, config: CheckConfig) -> Iterator[Finding]:
    """``began``: an entry of the journal's highest term. Motion may explain any finding: leases change often."""
    newest = 0 if began is None else began.head.term
    document = f"leases/{lease.shard}"
    if lease.term < newest:
        yield Finding(
            FindingKind.LEASE_TERM,
            document,
            f"the lease is of term {lease.term}, and the journal has been at term {newest}",
            "it was deleted or written by hand; the next leader takes a term above the journal's",
            witness=f"{lease.term}",
        )
    elif lease.holder and lease.term > newest and now - lease.acquired_at_ms > config.motion_ms:
        yield Finding(
            FindingKind.LEASE_TERM,
            document,
            f"{lease.holder} has held term {lease.term} since {instant_or_ms(lease.acquired_at_ms)}, and the journal"
            f" is at term {newest}: it has not begun",
            "it decides nothing: see why in its log, then end it; another one takes over",
            since_ms=lease.acquired_at_ms,
            witness=f"{lease.term}",
        )
    elif lease.holder and began is not None and lease.term == newest and began.head.holder != lease.holder:
        yield Finding(
            FindingKind.LEASE_TERM,
            document,
            f"{lease.holder} holds term {lease.term}, and its entries in the journal are of {began.head.holder}",
            "the lease was written by hand; end that replica, and the next one takes a term of its own",
            witness=f"{lease.term} {lease.holder}",
        )
    silent_ms = now - lease.renewed_at_ms
    if silent_ms > 3 * lease.lease_duration_ms + config.motion_ms:
        yield Finding(
            FindingKind.NOBODY_LEADS,
            document,
            f"it was last renewed {silent_ms // 1_000} s ago, in term {lease.term}"
            + (f", by {lease.holder}" if lease.holder else ", and given back"),
            "nothing fires and nothing is dispatched: are there replicas, and does MongoDB take writes?",
            since_ms=lease.renewed_at_ms,
            witness=f"{lease.term} {lease.renewals}",
        )


def check_shard(registered: RegisteredProcessor, led: SomeOf[str]) -> Iterator[Finding]:
    """A processor of a shard without a leader gets no jobs. ``led``: the shards with a lease or a journal."""
    processor = registered.processor
    if led and processor.shard not in led:
        yield Finding(
            FindingKind.UNKNOWN_SHARD,
            f"processors/{processor.id}",
            f"it serves the shard {processor.shard!r}, which has no leader; there are {', '.join(sorted(led))}",
            "start a replica of that shard, or correct HASCHEDULER_SHARD of the processor",
            witness=f"{processor.shard}",
        )


def check_zone_data(replicas: Iterable[ReplicaStatus], now: int, config: CheckConfig) -> Iterator[Finding]:
    """Find replicas that run for longer than a rolling upgrade takes, with other time-zone data than others do."""
    names: dict[str, list[str]] = {}
    for replica in replicas:
        if replica.zone_data is not None and now - replica.started_at_ms > config.patience_ms:
            names.setdefault(replica.zone_data, []).append(replica.name)
    if len(names) > 1:
        data = "; ".join(f"{version}: {', '.join(sorted(named))}" for version, named in sorted(names.items()))
        yield Finding(
            FindingKind.ZONE_DATA_DIFFER,
            "replicas",
            f"their time-zone data differ ({data}): who leads decides when a local time comes",
            "finish the upgrade or the rollback: all replicas get one image; compare with hascheduler cluster",
            witness=data,
        )
