"""The next action for a replica set, from what its members answer: pure, but for the two functions that carry it out.

::

    no member has a configuration ── all have answered ──► initiate, on the first, with that one alone: it leads at once
                                  ── some have not     ──► wait: one of those may hold the data of a set that exists
    some have one                 ── none leads        ──► wait
                                  ── one leads         ──► a set; members that it lacks are added one by one, once they
                                                           have answered and belong to no other set

A member whose disk was replaced is in the configuration: the others tell it, and it fetches the data on its own. One
that was added has no vote until it has the data, so a set that grows never waits for it.

A short name stands for the full one that a set has.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pymongo.errors import OperationFailure

from hascheduler.bootstrap.member import MemberStatus
from hascheduler.errors import Conflict
from hascheduler.mongo.connection import Client
from hascheduler.mongo.faults import faults

_ALREADY_INITIALIZED = 23
_CHANGE_LIMIT_S = 20.0


@dataclass(frozen=True, slots=True)
class Wait:
    reason: str


@dataclass(frozen=True, slots=True)
class Initiate:
    """On ``host``; two that begin at once begin at the same."""

    host: str


@dataclass(frozen=True, slots=True)
class Complete:
    """The set exists and ``primary`` leads it. ``addable`` can be added now, ``awaited`` once they answer; ``others``
    are members of the set that the plan does not name."""

    primary: str
    addable: tuple[str, ...] = ()
    awaited: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


NextAction = Wait | Initiate | Complete


def next_action(wanted: Sequence[str], seen: Sequence[MemberStatus]) -> NextAction:
    """The next step; `Conflict` where only people can tell what is right."""
    holders = [member for member in seen if member.configuration is not None]
    silent = tuple(sorted(set(wanted) - {member.host for member in seen}))
    if not holders:
        return Wait(f"no answer yet from {', '.join(silent)}") if silent else Initiate(min(wanted))
    _demand_one_set(holders)
    primary = next((member.host for member in holders if member.is_primary), None) or _led_by(holders)
    if primary is None:
        return Wait("the set has no primary")
    present = _hosts(_newest(holders))
    missing = sorted(host for host in wanted if not any(_is_same(host, own) for own in present))
    _demand_own_names(holders, missing)
    return Complete(
        primary,
        addable=tuple(host for host in missing if host not in silent),
        awaited=tuple(host for host in missing if host in silent),
        others=tuple(sorted(own for own in present if not any(_is_same(host, own) for host in wanted))),
    )


async def initiate(client: Client, replica_set: str, host: str) -> None:
    """With the member that ``client`` asks, which is ``host``; if the set was made meanwhile, that is just as well."""
    configuration = {"_id": replica_set, "members": [{"_id": 0, "host": host}]}
    with faults("initiate the replica set", _CHANGE_LIMIT_S):
        try:
            await client.admin.command({"replSetInitiate": configuration})
        except OperationFailure as error:
            if error.code != _ALREADY_INITIALIZED:
                raise


async def add_member(client: Client, host: str) -> None:
    """To the set that the member which ``client`` asks leads. `StoreUnavailable` where it can't be done just now."""
    with faults(f"add {host}", _CHANGE_LIMIT_S):
        configuration = (await client.admin.command("replSetGetConfig"))["config"]
        if host in _hosts(configuration):
            return
        id = 1 + max(member["_id"] for member in configuration["members"])
        members = [*configuration["members"], {"_id": id, "host": host}]
        # Of two concurrent runs, the version of one is taken: it tries again.
        changed = {**configuration, "version": configuration["version"] + 1, "members": members}
        await client.admin.command({"replSetReconfig": changed})


def _demand_one_set(holders: Sequence[MemberStatus]) -> None:
    first = holders[0]
    for member in holders[1:]:
        if member.set_id != first.set_id:
            raise Conflict(
                f"{first.host} and {member.host} belong to two sets of the same name, each with its own data; take out"
                " the one that is not meant, or empty its disk"
            )


def _demand_own_names(holders: Sequence[MemberStatus], missing: Sequence[str]) -> None:
    for member in holders:
        if member.host in missing and member.known_as not in (None, member.host):
            raise Conflict(
                f"{member.host} is in the set as {member.known_as}; give --members with the names that the set has"
            )


def _led_by(holders: Sequence[MemberStatus]) -> str | None:
    return next((member.primary for member in holders if member.primary is not None), None)


def _newest(holders: Sequence[MemberStatus]) -> Mapping[str, Any]:
    configurations = [member.configuration for member in holders if member.configuration is not None]
    return max(configurations, key=lambda one: (one.get("term", 0), one["version"]))


def _is_same(wanted: str, own: str) -> bool:
    """Whether the set's ``own`` name is the wanted one, or that with a domain behind it: sets that 0.2.0 made on
    Kubernetes have the full names, which the short ones stand for."""
    (host, _, port), (own_host, _, own_port) = wanted.rpartition(":"), own.rpartition(":")
    return port == own_port and (own_host == host or own_host.startswith(f"{host}."))


def _hosts(configuration: Mapping[str, Any]) -> set[str]:
    return {member["host"] for member in configuration["members"]}
