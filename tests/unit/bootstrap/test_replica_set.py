"""The next action for a replica set whose members have longer names than the plan."""

from hascheduler.bootstrap.member import MemberStatus
from hascheduler.bootstrap.replica_set import Complete, next_action

_DOMAIN = "hascheduler.svc.cluster.local"


def _member(host: str, *own: str, primary: bool = False) -> MemberStatus:
    """As it answers under the name ``host``; ``own`` are the set's names, its own first."""
    hosts = [{"_id": number, "host": name} for number, name in enumerate(own)]
    configuration = {"_id": "rs0", "version": 1, "term": 1, "members": hosts, "settings": {"replicaSetId": "1"}}
    return MemberStatus(host=host, configuration=configuration, known_as=own[0], is_primary=primary, primary=own[0])


def test_a_set_that_has_full_names_is_the_one_of_the_short_names() -> None:
    own = tuple(f"mongodb-{number}.mongodb.{_DOMAIN}:27017" for number in range(2))
    wanted = [f"mongodb-{number}.mongodb:27017" for number in range(2)]
    seen = [_member(wanted[0], *own, primary=True), _member(wanted[1], own[1], own[0])]
    assert next_action(wanted, seen) == Complete(wanted[0])


def test_a_name_that_only_begins_alike_is_another_member() -> None:
    own = f"mongodb-1.mongodb.{_DOMAIN}:27017"
    seen = [_member("mongodb-1.mongodb:27017", own, primary=True)]
    wanted = ["mongodb-1.mongodb:27017", "mongodb-10.mongodb:27017", "mongodb-1.mongodb:27018"]
    found = next_action(wanted, seen)
    assert isinstance(found, Complete)
    assert found.awaited == ("mongodb-1.mongodb:27018", "mongodb-10.mongodb:27017")
