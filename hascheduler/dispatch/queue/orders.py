"""What the criteria of a policy mean for the structure of the line.

Within a *group* of waiting jobs (one lane, one kind, one flow, and, where priorities age, one priority) most criteria
can't tell two jobs apart, or never change their minds about them. What is left is a fixed sequence of few values, the
accumulated costs of tenant and key and the standing of the score, and then arrival. So a group needs no sorting: heaps
are enough, one of its tenants and one of each tenant's keys, and an accumulated cost, which only grows, is looked up
again when its entry comes to the top.

Lane and tier, where a policy begins with them, split the groups further: into *nodes*, of which only the best is
looked into.
"""

from hascheduler.model.lane import Lane
from hascheduler.model.policy import Criteria, Criterion

_SPLITTING = (Criterion.LANE, Criterion.TIER)


class CriteriaOrder:
    """One list of criteria, taken apart.

    ``lane_tiers`` are the criteria at its beginning that split the queue, ``rest`` those behind them, without
    ``arrival``.
    ``fixed`` is what orders the jobs of one group, before arrival: `FAIRNESS` and `SCORE`, in the policy's order.

    That does not suffice (``is_fixed`` is false) where fairness decides among jobs of one aged priority: which those
    are changes with time. Then the first jobs of all the group's keys are compared. ``shares`` is where in ``fixed``
    the tenant comes in, None where a group need not tell its tenants apart.
    """

    def __init__(self, criteria: Criteria) -> None:
        splitting = next((n for n, criterion in enumerate(criteria) if criterion not in _SPLITTING), len(criteria))
        self.criteria = criteria
        self.lane_tiers = criteria[:splitting]
        self.rest = tuple(each for each in criteria[splitting:] if each is not Criterion.ARRIVAL)
        self.fixed = tuple(each for each in criteria if each in (Criterion.FAIRNESS, Criterion.SCORE))
        self.has_lane = Criterion.LANE in criteria
        self.has_tier = Criterion.TIER in self.lane_tiers
        self.has_fairness = Criterion.FAIRNESS in criteria
        self.has_score = Criterion.SCORE in criteria
        self.ages = Criterion.AGED_PRIORITY in criteria
        self.is_fixed = not (self.ages and self.has_fairness) or self._decides_first(Criterion.AGED_PRIORITY)
        self.shares = self.fixed.index(Criterion.FAIRNESS) if self.has_fairness and self.is_fixed else None

    def _decides_first(self, aged: Criterion) -> bool:
        """Whether, before priorities are compared, fairness is, or the score, which leaves only equal ages equal."""
        before = self.criteria[: self.criteria.index(aged)]
        fair = self.criteria.index(Criterion.FAIRNESS)
        return Criterion.FAIRNESS in before or (self.has_score and self.criteria.index(Criterion.SCORE) < fair)


def own_criteria(policy: Criteria, lane: Lane) -> Criteria | None:
    """What orders the lane's jobs where that is not the deployment's ``policy``: the lane first, and then its own."""
    if lane.criteria is None or policy[0] is not Criterion.LANE:
        return None
    return (Criterion.LANE, *(each for each in lane.criteria if each is not Criterion.LANE))
