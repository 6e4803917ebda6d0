"""Replicas whose mirrors differ notice it; the one that is wrong reads everything again, and the others go on."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from hascheduler.mirror.changes import Change, Operation
from hascheduler.mirror.mirror import MARKED_EVERY
from hascheduler.model.collection import Collection
from tests.chance import load_profile
from tests.factories import make_replica
from tests.tiers import examples
from tests.unit.daemon.followers import Cluster, Follower
from tests.unit.mirror.nouns import job_fields, schedule_fields

load_profile()

MINUTE_MS = 60_000


def is_schedule(change: Change) -> bool:
    return change.collection is Collection.SCHEDULES


def missing_one_schedule(cluster: Cluster, wrong: Follower) -> None:
    """One is deleted, and ``wrong`` never hears of it."""
    key = (Collection.SCHEDULES, "planted")
    cluster.history._insert(key, schedule_fields())
    for one in cluster.followers:
        one.catch_up()
    wrong.drops = is_schedule
    cluster.history._delete(key)
    wrong.catch_up()
    wrong.drops = lambda _: False


@given(st.integers(0, 2**32), st.integers(2, 5))
@settings(max_examples=examples(150))
def test_an_undisturbed_cluster_never_differs_however_changes_are_batched(seed: int, replicas: int) -> None:
    cluster = Cluster(seed, replicas)
    for _ in range(cluster.random.randint(20, 400)):
        cluster.turn()
        if cluster.random.random() < 0.01:
            cluster.random.choice(cluster.followers).start()
    cluster.settle()
    for one in cluster.followers:
        assert (list(one.digests.differing), one.reasons) == ([], [])
        assert one.digests.published  # else nothing was compared


@given(st.integers(0, 2**32))
@settings(max_examples=examples(50))
def test_a_replica_that_missed_a_change_is_noticed_by_all_and_reads_again(seed: int) -> None:
    cluster = Cluster(seed)
    for _ in range(cluster.random.randint(0, 200)):
        cluster.turn()
    cluster.settle()
    wrong, *others = cluster.followers
    missing_one_schedule(cluster, wrong)
    cluster.settle()
    assert sorted(wrong.digests.differing) == ["r2", "r3"]
    assert [list(other.digests.differing) for other in others] == [["r1"], ["r1"]]
    assert (len(wrong.reasons), [other.reasons for other in others]) == (1, [[], []])
    wrong.start()
    cluster.clock.now += 2 * MINUTE_MS
    cluster.settle()
    assert all(list(one.digests.differing) == [] for one in cluster.followers)
    assert len(wrong.reasons) == 1


def test_a_job_whose_end_was_missed_is_a_difference() -> None:
    cluster = Cluster(1)
    key = (Collection.JOBS, "planted")
    cluster.history._insert(key, job_fields())
    cluster.settle()
    wrong = cluster.followers[2]
    wrong.drops = lambda change: change.collection is Collection.JOBS
    cluster.history._update(key, {"rev": 2, "state": "cancelled"})
    cluster.settle()
    assert sorted(wrong.digests.differing) == ["r1", "r2"]


@pytest.mark.parametrize(("leading", "reads_again"), [("r1", "r2"), ("r2", "r1")])
def test_of_two_the_one_that_does_not_lead_reads_again(leading: str, reads_again: str) -> None:
    """There is no telling which of them is wrong, and nothing waits for a standby's mirror."""
    cluster = Cluster(2, replicas=2)
    for one in cluster.followers:
        one.leads = one.name == leading
    cluster.settle()
    missing_one_schedule(cluster, cluster.followers[0])
    cluster.settle()
    assert {one.name: len(one.reasons) for one in cluster.followers} == {leading: 0, reads_again: 1}


def test_a_difference_is_logged_once_a_pair_and_shown_for_a_while() -> None:
    cluster = Cluster(3)
    cluster.settle()
    with capture_logs() as logs:
        missing_one_schedule(cluster, cluster.followers[0])
        cluster.settle()
        cluster.settle()
    reasons = [line for line in logs if line["event"] == "mirrors_differ"]
    assert [(line["log_level"], line["other"]) for line in reasons] == [("error", line["other"]) for line in reasons]
    assert sorted(line["other"] for line in reasons) == ["r1", "r1", "r2", "r3"]
    right = cluster.followers[1]
    cluster.clock.now += MINUTE_MS - 1_000
    assert list(right.digests.differing) == ["r1"]
    cluster.clock.now += 2_000
    assert list(right.digests.differing) == []


def test_where_reading_again_does_not_help_it_is_not_repeated() -> None:
    cluster = Cluster(4)
    cluster.settle()
    wrong = cluster.followers[0]
    for _ in range(5):
        missing_one_schedule(cluster, wrong)
        cluster.settle()
        assert list(wrong.digests.differing)
        wrong.start()
        cluster.settle()
    assert len(wrong.reasons) == 1
    cluster.clock.now += 11 * MINUTE_MS
    missing_one_schedule(cluster, wrong)
    cluster.settle()
    assert len(wrong.reasons) == 2


def test_where_all_differ_none_is_taken_to_be_right() -> None:
    cluster = Cluster(5)
    cluster.settle()
    for wrong in cluster.followers[:2]:
        missing_one_schedule(cluster, wrong)
        cluster.history._insert((Collection.SCHEDULES, wrong.name), schedule_fields())
        wrong.drops = is_schedule
        wrong.catch_up()
        wrong.drops = lambda _: False
    cluster.settle()
    assert all(list(one.digests.differing) for one in cluster.followers)
    assert all(one.reasons == [] for one in cluster.followers)


def test_who_has_yet_to_hear_of_a_third_does_not_take_it_for_a_matter_of_two() -> None:
    cluster = Cluster(10, replicas=1)
    cluster.settle()
    [one] = cluster.followers
    point, _ = one.digests.published[-1]
    one.digests.seen(make_replica("third", version="0.2.0"))
    one.digests.seen(make_replica("second", version="0.2.0", marks=((point, "f" * 16),)))
    assert (list(one.digests.differing), one.reasons) == (["second"], [])
    one.digests.gone("third")
    earlier, _ = one.digests.published[-2]
    one.digests.seen(make_replica("second", version="0.2.0", marks=((earlier, "f" * 16),)))
    assert len(one.reasons) == 1


@pytest.mark.parametrize("version", ["0.3.0", None])
def test_one_of_another_version_is_not_compared_with(version: str | None) -> None:
    cluster = Cluster(6, replicas=1)
    cluster.settle()
    [one] = cluster.followers
    marks = tuple((point, "f" * 16) for point, _ in one.digests.published)
    assert marks
    one.digests.seen(make_replica("other", version=version, marks=marks))
    assert list(one.digests.differing) == []
    one.digests.seen(make_replica("other", version="0.2.0", marks=marks))
    assert list(one.digests.differing) == ["other"]


def test_a_mark_is_noted_at_the_same_beat_whatever_the_batches_are() -> None:
    cluster = Cluster(7, replicas=2)
    slow, fast = cluster.followers
    for _ in range(4 * MARKED_EVERY):
        cluster.clock.now += 1
        slow.beat()
        fast.beat()
        cluster.history.write()
        slow.follow(1)
        fast.catch_up()
    slow.catch_up()
    common = dict(slow.digests.published).items() & dict(fast.digests.published).items()
    assert common
    assert all(int(point.rpartition("/")[2]) % MARKED_EVERY == 0 for point, _ in common)


def test_what_is_read_beside_the_stream_is_not_compared_until_the_stream_has_passed_it() -> None:
    cluster = Cluster(8, replicas=1)
    cluster.settle()
    [one] = cluster.followers
    one.mirror.want(Collection.JOBS, "nobody")
    noted = len(one.digests.published)
    before = one.digests.published
    one.follow(0)  # the reading
    for _ in range(MARKED_EVERY):
        one.beat()  # sent in the very millisecond of the reading: it may have been first
    one.catch_up()
    assert one.digests.published == before
    assert len(before) == noted
    for _ in range(2 * MARKED_EVERY):
        cluster.clock.now += 1
        one.beat()
        one.catch_up()
    assert one.digests.published != before


def test_planted_digests_of_mirrors_that_are_ahead_make_false_alarms() -> None:
    """Why the marks are filtered: without it, an undisturbed cluster differs."""
    for seed in range(40):
        cluster = Cluster(seed)
        for one in cluster.followers:
            one.digests._is_exact = lambda mark: True  # type: ignore[method-assign]
        for _ in range(400):
            cluster.turn()
        if any(list(one.digests.differing) for one in cluster.followers):
            return
    pytest.fail("no false alarm")


def test_a_change_that_was_read_for_its_event_makes_the_mirror_ahead() -> None:
    cluster = Cluster(9, replicas=1)
    [one] = cluster.followers
    ahead = one.mirror.ahead
    change = Change(Collection.SCHEDULES, Operation.PUT, "s", schedule_fields(), position="1.1", ahead=True)
    one.mirror.fold([change])
    assert one.mirror.ahead == ahead + 1
