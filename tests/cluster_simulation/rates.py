"""A rate limit over several shards in trouble: its units move, and of it all no more starts than of one bucket.

The story is that of `tests.cluster_simulation.shards` with a definition whose jobs may start at some rate over all
shards, and come in bursts of one tenant, so that now one shard and then another wants all of it. What is judged is when
a leader's core decided each dispatch that its journal has; the journal says only when it was written. A core that
begins counts its bucket as full, as a new leader's may be: what came before tells nothing then. Clocks run alike, as
each leader counts by its own.
"""

from collections.abc import Coroutine, Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any, NamedTuple

from hascheduler.daemon.replica import Replica
from hascheduler.dispatch.decisions import Dispatch
from hascheduler.mirror.changes import ShareSeen
from hascheduler.model.collection import Collection
from hascheduler.model.definition import Definition, RateLimit
from hascheduler.model.values.instants import WallMs
from tests.checkers.decided_once import claims_in
from tests.checkers.evidence import Evidence
from tests.checkers.rates_kept import rates_kept
from tests.cluster_simulation.loop import EPOCH_MS, SimLoop
from tests.cluster_simulation.run import PEACE_S, Result, Say, run_story
from tests.cluster_simulation.shard_mutants import PlantedInShards, keeps_to_no_share
from tests.cluster_simulation.shards import TENANTS, TROUBLES, ShardBugs, ShardedCluster, ShardStory

LIMIT = RateLimit(6, 3_000)
STEADY = "steady"
RATES_TROUBLES = tuple(trouble for trouble in TROUBLES if trouble != "clock_rate")


def run_rates(seed: int, only: Sequence[str] = (), bugs: ShardBugs | None = None) -> Result:
    """As `tests.cluster_simulation.run.run_seed`."""

    def tell(loop: SimLoop, result: Result, say: Say) -> Coroutine[Any, Any, None]:
        story = _RatesStory(loop, Random(f"{seed} rates"), result, say, bugs or ShardBugs())
        return story.tell(tuple(only) or RATES_TROUBLES)

    return run_story(seed, tell)


class _Decided(NamedTuple):
    """When a dispatch was decided, and by what a core knew then, which is another state once it has started over."""

    at_s: float
    state: Any


class _RatesStory(ShardStory):
    definitions = (Definition(STEADY, rate_limit=LIMIT), Definition("few", max_concurrency=4), Definition("any"))
    peace_s = 2 * PEACE_S
    """What waits for the rate goes as slowly as that says."""

    def _cluster_with(self, bugs: ShardBugs) -> ShardedCluster:
        self._decided: dict[tuple[str, str, int], _Decided] = {}
        """By the replica, the job and the attempt, as a core decided it for the first time."""

        def observed(replica: Replica) -> None:
            bugs.replica(replica)
            core: Any = replica.view.core
            step, id = core.step, replica._config.replica_id

            def stepped(now: WallMs, inputs: Any) -> Any:
                found = step(now, inputs)
                decided = _Decided((now - EPOCH_MS) / 1_000, core._state)
                for decision in found.decisions:
                    if isinstance(decision, Dispatch):
                        self._decided.setdefault((id, decision.job_id, decision.attempt), decided)
                return found

            core.step = stepped

        return super()._cluster_with(replace(bugs, replica=observed))

    async def _burst(self) -> None:
        tenant = self._chance.choice(TENANTS)
        for _ in range(self._chance.choice((4, 12))):
            await self._submit(self._chance.choice((STEADY, STEADY, "few", "any")), tenant)

    def _judge(self) -> None:
        super()._judge()
        limited = {
            commit.id for commit in self._all.of(Collection.JOBS) if (commit.after or {}).get("definition") == STEADY
        }
        started_s, full_again_s = [], []
        for shard in self._shards:
            state = None
            for decided in self._journaled(shard.evidence, limited):
                started_s.append(decided.at_s)
                if decided.state is not state:
                    full_again_s.append(decided.at_s)
                state = decided.state
        self._result.rated = len(started_s)
        wrong = rates_kept(sorted(started_s), LIMIT, full_again_s=sorted(full_again_s))
        if wrong:
            self._result.violations["rates_over_shards"] = wrong

    def _journaled(self, evidence: Evidence, limited: set[str]) -> Iterator[_Decided]:
        """The dispatches of jobs with the limit, in the order of that shard's journal; each once, as one whose outcome
        is not known is decided again."""
        seen = set()
        for commit in evidence.of(Collection.JOURNAL):
            if commit.after is None or commit.before is not None:
                continue
            for job_id, attempt in claims_in(commit.after["decisions"]):
                if job_id in limited and (job_id, attempt) not in seen:
                    seen.add((job_id, attempt))
                    yield self._decided[commit.after["holder"], job_id, attempt]


def _fills_with_each_share(replica: Replica) -> None:
    """A bucket whose share has moved begins full."""
    core: Any = replica.view.core
    fold = core._fold

    def full(seen: Any, now: WallMs) -> None:
        fold(seen, now)
        if isinstance(seen, ShareSeen):
            core._state.limits._rates._buckets.clear()

    core._fold = full


# A share that is granted before the other shard gives it up is planted where caps are: there it shows.
PLANTED_IN_RATES: Mapping[str, PlantedInShards] = {
    "rate-full-with-each-share": PlantedInShards(ShardBugs(replica=_fills_with_each_share), ("kill_leader",)),
    "rate-share-not-kept-to": PlantedInShards(ShardBugs(replica=keeps_to_no_share), ("kill_leader",), first=1),
}
