"""A fairness key is free text: it divides a tenant's own share, and neither adds to that nor touches another's."""

from collections import Counter
from random import Random
from typing import Any

import bson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hascheduler.daemon.loop.cost_checkpoint import CostCheckpoint
from hascheduler.dispatch import accounts as room
from hascheduler.dispatch.accounts import AccountsSnapshot, FairAccounts, encode_accounts
from hascheduler.dispatch.config import PolicyConfig
from hascheduler.dispatch.dispatcher import Dispatcher
from hascheduler.dispatch.inputs import AccountsRestored, TermBegan
from hascheduler.dispatch.rules import Rules
from hascheduler.mirror.changes import JobSeen, ProcessorSeen
from hascheduler.model.policy import PRESETS, Criterion
from tests.unit.daemon.doubles import HandClock
from tests.unit.dispatch.nouns import make_job, make_processor, wall
from tests.unit.simulate.scenarios import job, outcome_of

FAIR = [name for name, criteria in PRESETS.items() if Criterion.FAIRNESS in criteria]


def starts_of(*jobs: dict[str, Any], **rest: object) -> list[str]:
    """The tenants in the order in which their jobs started."""
    outcome = outcome_of(*jobs, **{"learn_cost": False, **rest})
    tenant_of = {each.job.id: each.job.tenant for each in outcome.jobs}
    return [tenant_of[attempt.job] for attempt in outcome.attempts]


@pytest.mark.parametrize("policy", FAIR)
def test_jobs_under_the_name_of_another_tenant_are_not_charged_to_it(policy: str) -> None:
    """What they cost would put the other tenant behind all who come after them."""
    abuse = [job(f"abuse-{n}", 1, tenant="acme", fairness_key="globex", definition="dear") for n in range(4)]
    later = [job(f"{name}-{n}", tenant=name, fairness_key=name, submit_at=10) for n in range(3) for name in TENANTS]
    starts = starts_of(*abuse, *later, policy=policy, definitions={"x": {}, "dear": {"default_cost": 500}})
    assert starts[4:10].count("globex") == 3, "its three jobs alternate with those of a third, before any of acme's"
    assert starts[-3:] == ["acme"] * 3


TENANTS = ("globex", "initech", "acme")


@given(
    keys=st.lists(st.integers(1, 9), min_size=2, max_size=5),
    policy=st.sampled_from([*FAIR, ["fairness"], ["tier", "lane", "fairness", "score"]]),
    start=st.sampled_from(["zero", "min"]),
    seed=st.integers(0, 2**32),
)
def test_tenants_with_work_are_never_apart_by_more_than_one_job_whatever_their_keys(
    keys: list[int], policy: object, start: str, seed: int
) -> None:
    """Their keys have the same names; who has more jobs than the others has only more left."""
    chance, least = Random(seed), 8
    load = [
        job(f"{tenant}-{n}", tenant=f"t{tenant}", fairness_key=f"k{n % count}", submit_at=0)
        for tenant, count in enumerate(keys)
        for n in range(least + chance.randrange(9))
    ]
    chance.shuffle(load)
    starts = starts_of(*load, policy=policy, idle_key_start=start)
    begun: Counter[str] = Counter({f"t{tenant}": 0 for tenant in range(len(keys))})
    for tenant in starts[: least * len(keys)]:
        begun[tenant] += 1
        assert max(begun.values()) - min(begun.values()) <= 1


def churned(*tenants: str, keys: int) -> FairAccounts:
    """Each tenant has used so many keys, one after the other."""
    accounts = FairAccounts(PolicyConfig(), Rules())
    for now in range(keys):
        for tenant in tenants:
            accounts.arrive(tenant, f"k{now}")
            accounts.charge(tenant, f"k{now}", "x", "t")
            accounts.leave(tenant, f"k{now}", now)
    return accounts


def test_of_one_tenant_so_many_keys_are_remembered_and_those_of_others_stay() -> None:
    accounts = churned("acme", keys=room.KEYS_MAX + 20)
    accounts.arrive("globex", "old")
    accounts.charge("globex", "old", "x", "t")
    accounts.leave("globex", "old", 0)
    for more in range(room.KEYS_MAX + 20, room.KEYS_MAX + 40):
        accounts.arrive("acme", f"k{more}")
    remembered = [row for row in accounts.snapshot(0, 10**9).accumulated if row[0] == "acme"]
    assert len(remembered) == room.KEYS_MAX
    assert accounts.cost("globex", "old") == 1_000
    assert accounts.cost("acme", "k39") == 0, "it was idle for the longest time"
    assert accounts.cost("acme", "k40") > 0


async def test_the_record_can_be_stored_however_long_keys_and_targets_are() -> None:
    class Store:
        saved = AccountsSnapshot()

        async def save(self, shard: str, term: int, accounts: AccountsSnapshot) -> bool:
            self.saved = accounts
            return True

        async def load(self, shard: str) -> AccountsSnapshot:
            return self.saved

    core, store, long = Dispatcher(), Store(), "\U0001f600"
    rows = range(room.KEYS_MAX)
    core.step(
        wall(0),
        [
            AccountsRestored(
                AccountsSnapshot(
                    accumulated=tuple(("acme", f"{n}{long * 250}", 1, 0) for n in rows),
                    learned=tuple(("x", f"{n}{long * 1_000}", 1, 0) for n in rows),
                )
            )
        ],
    )
    await CostCheckpoint(core, store, HandClock(), name="default", term=lambda: 1).save()
    assert len(store.saved.accumulated) > 1_000
    assert len(bson.encode(encode_accounts(store.saved))) < 15 * 2**20


def test_a_caller_of_one_tenant_does_not_see_the_key_of_the_job_that_goes_first() -> None:
    core = Dispatcher()
    core.step(wall(0), [TermBegan(1), ProcessorSeen(make_processor("p", slots=1))])
    for id, tenant, key in (("runs", "acme", "a"), ("first", "globex", "secret"), ("waits", "acme", "b")):
        core.step(wall(0), [JobSeen(make_job(id, tenant=tenant, fairness_key=key, target=id))])
    told = core.explain("waits", wall(1), only="acme")
    assert told is not None
    assert told.position is not None
    [fairness] = [each for each in told.position.criteria if each.criterion is Criterion.FAIRNESS]
    assert fairness.value == "tenant 'acme': 1 s, key 'b': 1 s"
    assert fairness.first == "another tenant: 1 s, its key: 0 s"
