"""The structure of the pending queue, derived from the criteria of a policy.

Within a *class queue* (one lane, one scheduling class, one aging rate, and, if priorities age, one priority) most
criteria either can't tell two jobs apart, or never change their order. What is left is a fixed sequence of few values
(the accumulated costs of tenant and key, the rank by score, the values that criteria fix) and then arrival. So a class
queue needs no sorting: heaps are enough, one of its tenants and one of each tenant's buckets, and an accumulated cost,
which only grows, is read again when its entry comes to the top.

Lane and tier, if a policy begins with them, split the class queues further into `LaneTier`s, of which only the best is
searched.
"""

from hascheduler.dispatch.queue.criteria import Measures
from hascheduler.dispatch.queue.fifo_buckets import BucketKey
from hascheduler.model.job import JobRef
from hascheduler.model.policy import Criteria, Criterion
from hascheduler.schema.lane import Lane

SPLITTING = (Criterion.LANE, Criterion.TIER)
_RANKING = (Criterion.FAIRNESS, Criterion.SCORE)


class CriteriaOrder:
    """One list of criteria, taken apart.

    ``splitting`` are the criteria at its beginning that split the queue into lane tiers, ``rest`` those after them,
    without ``arrival``. ``fixed`` orders the jobs of one class queue before arrival, in the policy's order.

    That does not suffice (``is_fixed`` is false) if a criterion tells jobs apart by what changes while they wait, or if
    a criterion other than the score decides among jobs of one aged priority: which jobs those are changes with time.
    Then the first jobs of all buckets are compared. ``shares`` is the place of the tenant in ``fixed``; None if a class
    queue need not tell its tenants apart.
    """

    def __init__(self, criteria: Criteria, measures: Measures) -> None:
        splitting = next((n for n, criterion in enumerate(criteria) if criterion not in SPLITTING), len(criteria))
        self.criteria = criteria
        self.splitting = criteria[:splitting]
        self.rest = tuple(each for each in criteria[splitting:] if each is not Criterion.ARRIVAL)
        self._apart = tuple([measures[each] for each in criteria if measures[each].tells_apart])
        self.fixed = tuple(each for each in criteria if each in _RANKING or measures[each].tells_apart)
        self.has_lane = Criterion.LANE in criteria
        self.has_tier = Criterion.TIER in self.splitting
        self.has_fairness = Criterion.FAIRNESS in criteria
        self.has_score = Criterion.SCORE in criteria
        self.ages = Criterion.AGED_PRIORITY in criteria
        changes = any(not each.is_fixed for each in self._apart)
        self.is_fixed = not changes and (not self.ages or self._deciding_ages() is None)
        self.shares = self.fixed.index(Criterion.FAIRNESS) if self.has_fairness and self.is_fixed else None

    def bucket_key(self, job: JobRef) -> BucketKey:
        """Return what the job has in common with the others in its FIFO bucket."""
        account = (job.tenant, job.fairness_key) if self.has_fairness else (None, None)
        return (*account, job.priority, tuple([each.apart(job) for each in self._apart]) if self._apart else None)

    def _deciding_ages(self) -> Criterion | None:
        """Return the criterion that decides among jobs of one aged priority and several ages; None if their age does.

        A score leaves only equal ages equal, in a class queue of one priority: what comes after it does not matter.
        """
        place = self.criteria.index(Criterion.AGED_PRIORITY)
        if Criterion.SCORE in self.criteria[:place]:
            return None
        deciding = next((each for each in self.criteria[place:] if each in self.fixed), None)
        return None if deciding is Criterion.SCORE else deciding


def own_criteria(policy: Criteria, lane: Lane) -> Criteria | None:
    """Return the lane's own criteria, the lane first; None if it follows the deployment's ``policy``."""
    if lane.criteria is None or policy[0] is not Criterion.LANE:
        return None
    return (Criterion.LANE, *(each for each in lane.criteria if each is not Criterion.LANE))
