"""Whatever an editor makes of the Lease, a candidate leads again without help, and no term comes twice.

Two candidates with the clock in our hand: each turn is a retry period, in which they do what `Leader` and `LeasePoller`
do with their electors. One of them may be dead.
"""

from collections.abc import Callable
from typing import Any

import pytest

from hascheduler.election.elector import ElectionConfig, Elector, LeaseAnswer
from hascheduler.kubernetes.api import KubernetesApi
from hascheduler.kubernetes.leases import DURATION_MS, RENEWALS, TERM, KubernetesLeaseStore
from hascheduler.model.values.instants import MonoMs
from tests.doubles.kubernetes.api_server import ApiServerDouble
from tests.doubles.kubernetes.service_account import NAMESPACE
from tests.factories import NOW
from tests.tiers import spread

LEASE_MS, DEADLINE_MS, RETRY_MS = 1_500, 1_000, 500
PATIENCE_TURNS = 2 * (LEASE_MS + DEADLINE_MS) // RETRY_MS
LONGEST_MS = 600_000
NAME = "hascheduler-default"


class Candidate:
    def __init__(self, id: str, api: KubernetesApi) -> None:
        self._leases = KubernetesLeaseStore(api)
        self.elector = Elector(ElectionConfig("default", id, "", LEASE_MS, DEADLINE_MS, RETRY_MS), MonoMs(0))
        self.terms: list[int] = []

    async def turn(self, now: MonoMs) -> None:
        elector = self.elector
        if not elector.leads(now):
            elector.observe(await self._leases.get("default"), now)
        attempt = elector.next_attempt(now, NOW)
        if attempt is None:
            return
        if attempt.expected is None:
            won = await self._leases.create(attempt.proposed)
        else:
            won = await self._leases.update(attempt.expected, attempt.proposed)
        if not won:
            elector.observe(await self._leases.get("default"), now)
        elector.concluded(attempt, LeaseAnswer.WON if won else LeaseAnswer.LOST, now, now)
        if won and (attempt.expected is None or attempt.proposed.term != attempt.expected.term):
            self.terms.append(attempt.proposed.term)


class Rivals:
    def __init__(self, api: KubernetesApi) -> None:
        self.alive = [Candidate("one", api), Candidate("two", api)]
        self.all = list(self.alive)
        self.now = MonoMs(0)

    async def turn(self) -> None:
        self.now = MonoMs(self.now + RETRY_MS)
        for candidate in self.alive:
            await candidate.turn(self.now)
        assert len(self.leading()) <= 1

    async def until_one_leads(self) -> None:
        for _ in range(PATIENCE_TURNS):
            if self.leading():
                return
            await self.turn()
        raise AssertionError(f"nobody leads after {PATIENCE_TURNS} turns")

    def leading(self) -> list[Candidate]:
        return [candidate for candidate in self.alive if candidate.elector.leads(self.now)]

    def terms(self) -> list[int]:
        return sorted(term for candidate in self.all for term in candidate.terms)


Edit = Callable[[dict[str, Any]], object]


def _annotations(**values: str) -> Edit:
    names = {"term": TERM, "renewals": RENEWALS, "duration": DURATION_MS}
    return lambda lease: lease["metadata"]["annotations"].update({names[key]: text for key, text in values.items()})


def _spec(**values: object) -> Edit:
    return lambda lease: lease["spec"].update(values)


EDITS: dict[str, Edit] = {
    "no annotations and no spec": lambda lease: (lease.pop("spec"), lease["metadata"].pop("annotations")),
    "a term that is none": _annotations(term="soon"),
    "a lower term": _annotations(term="1", renewals="0"),
    "a higher term": _annotations(term="77"),
    "the highest term": _annotations(term=str(2**53 - 1)),
    "an endless term": _annotations(term="9" * 300),
    "most renewals": _annotations(renewals=str(2**53 - 1)),
    "no holder": _spec(holderIdentity=None),
    "another holder": _spec(holderIdentity="a person"),
    "a long holder": _spec(holderIdentity="x" * 100_000),
    "another holder without annotations": lambda lease: (
        lease["metadata"].pop("annotations"), _spec(holderIdentity="leader-election of another program")(lease)
    ),
    "the shortest duration": _spec(leaseDurationSeconds=1),
    "the longest duration, of another holder": _spec(leaseDurationSeconds=2**31 - 1, holderIdentity="a person"),
    "no duration": _spec(leaseDurationSeconds=None),
    "no times": _spec(acquireTime=None, renewTime=None),
    "a time to come": _spec(renewTime="9999-12-31T23:59:59.999999Z"),
    "most transitions": _spec(leaseTransitions=2**31 - 1),
}  # fmt: skip


@pytest.fixture
async def rivals(api: KubernetesApi) -> Rivals:
    """One of them leads, not in the first term."""
    rivals = Rivals(api)
    await rivals.until_one_leads()
    rivals.leading()[0].elector.step_down()
    await rivals.turn()
    await rivals.until_one_leads()
    return rivals


@pytest.mark.parametrize(
    ("edit", "is_dead"),
    spread(
        (
            pytest.param(edit, is_dead, id=f"{edit}, leader {'is dead' if is_dead else 'lives'}")
            for edit in EDITS
            for is_dead in (False, True)
        ),
        check=8,
    ),
)
async def test_after_any_edit_one_leads_again_in_a_term_of_its_own(
    rivals: Rivals, cluster: ApiServerDouble, edit: str, is_dead: bool
) -> None:
    [leading] = rivals.leading()
    if is_dead:
        rivals.alive.remove(leading)
    cluster.leases.edit(NAMESPACE, NAME, EDITS[edit])
    for _ in range((LEASE_MS + DEADLINE_MS) // RETRY_MS):
        await rivals.turn()
    if "longest" in edit:
        rivals.now = MonoMs(rivals.now + LONGEST_MS)
    await rivals.until_one_leads()
    for _ in range(LEASE_MS // RETRY_MS + 1):
        await rivals.turn()
        assert rivals.leading(), "who leads again goes on to lead"
    terms = rivals.terms()
    assert len(set(terms)) == len(terms), terms


async def test_a_deleted_lease_begins_in_a_higher_term(rivals: Rivals, cluster: ApiServerDouble) -> None:
    before = max(rivals.terms())
    cluster.leases.delete(NAMESPACE, NAME)
    await rivals.turn()
    await rivals.until_one_leads()
    assert max(rivals.terms()) > before


async def test_another_program_that_goes_on_renewing_is_left_alone(rivals: Rivals, cluster: ApiServerDouble) -> None:
    for second in range(PATIENCE_TURNS):
        renewed = f"2030-01-01T00:01:{second:02d}.000000Z"
        cluster.leases.edit(NAMESPACE, NAME, _spec(holderIdentity="another program", renewTime=renewed))
        await rivals.turn()
    assert rivals.leading() == []
    await rivals.until_one_leads()
