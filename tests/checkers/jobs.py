"""What is promised of jobs: none is lost or made up, each runs once at a time, in order, and within its limits."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise, zip_longest
from typing import Any

from hascheduler.model.collection import Collection
from hascheduler.model.documents.fired_job import graph_job_ids
from hascheduler.model.event import EventType
from hascheduler.model.job import LIVE, OCCUPYING, TERMINAL, TRANSITIONS, JobState, fire_job_id, fired_at, last_job_id
from hascheduler.triggers import next_nominal
from tests.checkers.evidence import Commit, Effect, Evidence, SeenEvent


def may_follow(before: JobState, after: JobState) -> bool:
    return any(before in row.sources and after in row.targets for row in TRANSITIONS.values())


def nothing_lost(evidence: Evidence) -> list[str]:
    """Every obligation has its end: a job that ended for each acknowledged submit, one verdict for each nominal
    time."""
    jobs = evidence.documents[Collection.JOBS]
    wrong = []
    for submit in evidence.submits:
        job = jobs.get(submit.id)
        if job is None and submit.acknowledged:
            wrong.append(f"{submit.id} was acknowledged and is gone")
        elif job is not None and job["state"] not in TERMINAL:
            wrong.append(f"{submit.id} is still {job['state']}, attempt {job['attempt']}")
    runs = list(evidence.documents[Collection.VERDICTS].values())
    for name, schedule in evidence.schedules.items():
        of_one = [run for run in runs if run["schedule"] == name]
        nominal_ms = next_nominal(schedule.trigger, schedule.now)
        while nominal_ms is not None and nominal_ms <= evidence.until_ms:
            job = jobs.get(fire_job_id(name, nominal_ms))
            passed_over = sum(run["first_ms"] <= nominal_ms <= run["last_ms"] for run in of_one)
            if (job is not None) + passed_over != 1:
                wrong.append(f"{name} at {nominal_ms}: {int(job is not None)} fires, {passed_over} other verdicts")
            if job is not None and job["state"] not in TERMINAL:
                wrong.append(f"{job['_id']} is still {job['state']}, attempt {job['attempt']}")
            nominal_ms = next_nominal(schedule.trigger, nominal_ms)
    return wrong


def nothing_extra(evidence: Evidence) -> list[str]:
    """No job and no effect that nobody asked for; and no job vanishes in between."""
    asked = {submit.id for submit in evidence.submits}
    far_ms = evidence.until_ms + max(600_000, evidence.skew_ms)
    for name, schedule in evidence.schedules.items():
        nominal_ms = next_nominal(schedule.trigger, schedule.now)
        while nominal_ms is not None and nominal_ms <= far_ms:
            last = fire_job_id(name, nominal_ms)
            asked |= {last} if schedule.graph is None else {*graph_job_ids(schedule.graph, last).values()}
            nominal_ms = next_nominal(schedule.trigger, nominal_ms)
    wrong = [f"{id} was never asked for" for id in evidence.documents[Collection.JOBS] if id not in asked]
    effects = [effect.job_id for effect in evidence.effects if effect.job_id not in asked]
    wrong += [f"an effect of {id}, never asked for" for id in effects]
    jobs = evidence.of(Collection.JOBS)
    deleted = [commit for commit in jobs if commit.after is None]
    wrong += [f"{commit.id} was deleted at {commit.at_s:.3f} s" for commit in deleted]
    return wrong


def one_effect(evidence: Evidence) -> list[str]:
    """A job is accepted as succeeded once, by an attempt whose handler ran to its end; no attempt runs twice."""
    wrong = []
    runs = Counter((effect.job_id, effect.attempt) for effect in evidence.effects)
    wrong += [f"attempt {attempt} of {job} ran {count} times" for (job, attempt), count in runs.items() if count > 1]
    ended_s = {
        (effect.job_id, effect.attempt): effect.ended_s for effect in evidence.effects if effect.ended_s is not None
    }
    successes: Counter[str] = Counter()
    for commit in evidence.of(Collection.JOBS):
        after = commit.after or {}
        was = (commit.before or {}).get("state")
        if after.get("state") == JobState.SUCCEEDED and was != JobState.SUCCEEDED:
            successes[commit.id] += 1
            if ended_s.get((commit.id, after["attempt"]), float("inf")) > commit.at_s:
                wrong.append(f"{commit.id} succeeded by attempt {after['attempt']}, which had not ended")
    wrong += [f"{job} succeeded {count} times" for job, count in successes.items() if count > 1]
    return wrong


_AWAKE_S = 1.0
"""A process that wakes up may take so long to notice what happened meanwhile."""


def attempts_apart(evidence: Evidence) -> list[str]:
    """No two handlers are at work on one job at once, unless the earlier one's process stood still and could not
    know."""
    of_job: dict[str, list[Effect]] = defaultdict(list)
    for effect in evidence.effects:
        of_job[effect.job_id].append(effect)
    wrong = []
    for job, effects in of_job.items():
        effects.sort(key=lambda effect: effect.began_s)
        for earlier, later in pairwise(effects):
            end_s = earlier.ended_s or evidence.deaths.get(earlier.processor, float("inf"))
            if end_s <= later.began_s or _stood_still(evidence, earlier.processor, later.began_s, end_s):
                continue
            wrong.append(
                f"{job}: attempt {earlier.attempt} on {earlier.processor} until {end_s:.3f} s,"
                f" attempt {later.attempt} on {later.processor} from {later.began_s:.3f} s"
            )
    return wrong


def _stood_still(evidence: Evidence, processor: str, from_s: float, to_s: float) -> bool:
    return any(
        began_s <= from_s and to_s <= ended_s + _AWAKE_S for began_s, ended_s in evidence.pauses.get(processor, ())
    )


def cancels_kept(evidence: Evidence) -> list[str]:
    """An acknowledged cancel is final: the job stays cancelled, and no handler begins with it after that, unless
    it is revived later."""
    jobs = evidence.documents[Collection.JOBS]
    cancelled_s: dict[str, float] = {}
    revived_s = _revived_s(evidence)
    for id, at_s in evidence.cancels:
        if at_s > revived_s.get(id, 0.0):
            cancelled_s[id] = min(at_s, cancelled_s.get(id, at_s))
    wrong = []
    for id in cancelled_s:
        state = jobs[id]["state"] if id in jobs else "gone"
        if state != JobState.CANCELLED:
            wrong.append(f"{id} was acknowledged as cancelled and is {state}")
    for effect in evidence.effects:
        at_s = cancelled_s.get(effect.job_id, float("inf"))
        if effect.began_s > at_s and not _had_slept(evidence, effect, at_s):
            began = f"began on {effect.processor} at {effect.began_s:.3f} s"
            wrong.append(f"{effect.job_id} was cancelled at {at_s:.3f} s and {began}")
    return wrong


def _revived_s(evidence: Evidence) -> dict[str, float]:
    """When each job was revived last."""
    return {
        commit.id: commit.at_s
        for commit in evidence.of(Collection.JOBS)
        if commit.before and commit.after and commit.before["state"] in TERMINAL
        if commit.after["state"] == JobState.PENDING
    }


def _had_slept(evidence: Evidence, effect: Effect, cancelled_s: float) -> bool:
    """Whether its process stood still in between, so that it could not know."""
    return any(
        began_s <= effect.began_s <= ended_s + _AWAKE_S and cancelled_s <= ended_s
        for began_s, ended_s in evidence.pauses.get(effect.processor, ())
    )


def legal_moves(evidence: Evidence) -> list[str]:
    """Every change of a job is a row of the table, its rev rises by one, its attempt never falls and rises with each
    new life."""
    wrong = []
    for commit in evidence.of(Collection.JOBS):
        before, after = commit.before, commit.after
        if after is None:
            continue
        if before is None:
            # A fire whose first attempt is decided too may be inserted as dispatched, in one write.
            is_claimed_fire = after["state"] == JobState.DISPATCHED and after["attempt"] == 1 and after["nominal_ms"]
            if (after["state"] != JobState.PENDING or after["attempt"] != 0) and not is_claimed_fire:
                wrong.append(f"{commit.id} began {after['state']}, attempt {after['attempt']}")
            continue
        was, became = JobState(before["state"]), JobState(after["state"])
        if was is not became and not may_follow(was, became):
            wrong.append(f"{commit.id} went from {was} to {became}")
        if after["rev"] != before["rev"] + 1 and after["rev"] != before["rev"]:
            wrong.append(f"{commit.id} went from rev {before['rev']} to {after['rev']}")
        if after["attempt"] < before["attempt"]:
            wrong.append(f"{commit.id} went from attempt {before['attempt']} to {after['attempt']}")
        is_claim = was is JobState.PENDING and became is JobState.DISPATCHED
        if is_claim and after["attempt"] != before["attempt"] + 1:
            wrong.append(f"{commit.id} was claimed as attempt {after['attempt']} after {before['attempt']}")
        if was in TERMINAL and became is JobState.PENDING and after["attempt"] != before["attempt"] + 1:
            wrong.append(f"{commit.id} was revived as attempt {after['attempt']} after {before['attempt']}")
    return wrong


_ENDS = {"failures": "failed", "losses": "lost"}


def losses_apart(evidence: Evidence) -> list[str]:
    """A loss is no failure: each of a job's two counts rises when an attempt ended so that ran, and only then."""
    wrong = []
    for commit in evidence.of(Collection.JOBS):
        before, after = commit.before, commit.after
        if before is None or after is None or before["state"] in TERMINAL:
            continue
        ended = _ended(before, after)
        for name, end in _ENDS.items():
            more = after.get(name, 0) - before.get(name, 0)
            if more != (ended == end):
                wrong.append(f"{commit.id}, attempt {after['attempt']}, ended {ended}: {name} grew by {more}")
    return wrong


def _ended(before: Mapping[str, Any], after: Mapping[str, Any]) -> str | None:
    """How the attempt ended that ran before this change; None: none did."""
    if before["state"] != JobState.RUNNING or after["state"] == JobState.RUNNING:
        return None
    return str(after["attempts"][-1]["outcome"])


_ENTERED = {
    JobState.PENDING: EventType.RETURNED,
    JobState.DISPATCHED: EventType.DISPATCHED,
    JobState.RUNNING: EventType.STARTED,
    **{state: EventType(state.value) for state in TERMINAL},
}


def events_are_history(evidence: Evidence) -> list[str]:
    """The events that a follower got are what was committed of the jobs, in the same order: none more, none less."""
    history = [
        SeenEvent(commit.id, type.value) for commit in evidence.of(Collection.JOBS) for type in _types_of(commit)
    ]
    wrong = [_first_difference(run, history) for run in evidence.events if run]
    return [text for text in wrong if text]


def _first_difference(run: Sequence[SeenEvent], history: Sequence[SeenEvent]) -> str:
    """Return where ``run`` leaves the history that begins with its first event; "" if it never does."""
    begins = [place for place, event in enumerate(history) if event == run[0]]
    if not begins:
        return f"an event says {run[0]}, and the history does not"
    differ = []
    for begin in begins:
        # A run ends before the history does: its follower was the first to stop.
        pairs = enumerate(zip_longest(run, history[begin : begin + len(run)]))
        differ.append(next(((place, seen, was) for place, (seen, was) in pairs if seen != was), None))
    if None in differ:
        return ""
    place, seen, was = max(each for each in differ if each is not None)
    return f"event {place} of {len(run)} says {seen}, the history {was}"


def _types_of(commit: Commit) -> Iterator[EventType]:
    before, after = commit.before, commit.after
    if after is None:
        return
    became = JobState(after["state"])
    if before is None:
        yield EventType.SUBMITTED
        if became is JobState.DISPATCHED:
            yield EventType.DISPATCHED
    elif after["state"] != before["state"]:
        is_revived = became is JobState.PENDING and after["attempt"] != before["attempt"]
        yield EventType.REVIVED if is_revived else _ENTERED[became]
    elif after.get("cancel_requested_at_ms") is not None and before.get("cancel_requested_at_ms") is None:
        yield EventType.CANCEL_REQUESTED
    elif after["priority"] != before["priority"]:
        yield EventType.REPRIORITIZED


def caps_kept(evidence: Evidence) -> list[str]:
    """At no commit do more jobs of a definition occupy slots than it may, nor two of a conflict group on one target,
    nor more with one value at a key."""
    rules = evidence.documents[Collection.DEFINITIONS]
    by_definition: Counter[str] = Counter()
    by_key: Counter[tuple[str, ...]] = Counter()
    by_target: defaultdict[tuple[str, str], dict[str, tuple[str, bool]]] = defaultdict(dict)
    wrong = []
    for commit in evidence.of(Collection.JOBS):
        job = commit.after or commit.before or {}
        rule = rules.get(job["definition"], {})
        change = occupies(commit.after) - occupies(commit.before)
        by_definition[job["definition"]] += change
        cap = rule.get("max_concurrency")
        if change > 0 and cap is not None and by_definition[job["definition"]] > cap:
            wrong.append(f"{by_definition[job['definition']]} of {job['definition']} at {commit.at_s:.3f} s, cap {cap}")
        caps = {limit["key"]: limit["max_concurrency"] for limit in rule.get("key_limits", ())}
        for key, value in job.get("limit_keys", ()):
            alike = (job["definition"], job["tenant"], key, value)
            by_key[alike] += change
            if change > 0 and by_key[alike] > (caps.get(key) or by_key[alike]):
                wrong.append(f"{by_key[alike]} of {alike} at {commit.at_s:.3f} s, cap {caps[key]}")
        group = rule.get("conflict_group")
        if group:
            held = by_target[group, job["target"]]
            tenant, is_shared = job["tenant"], rule.get("conflict_scope", "shared") == "shared"
            if change < 0:
                held.pop(commit.id, None)
            elif change > 0:
                if any(is_shared or other_is or other == tenant for other, other_is in held.values()):
                    wrong.append(f"two of group {group} on {job['target']} at {commit.at_s:.3f} s: {commit.id}")
                held[commit.id] = (tenant, is_shared)
    return wrong


def occupies(job: Any) -> int:
    """1 where that version of a job holds a slot, else 0; None: there is none."""
    return int(job is not None and job["state"] in OCCUPYING)


def graphs_apart(evidence: Evidence) -> list[str]:
    """Where the fires of a schedule wait for each other, no job is dispatched while one of an earlier fire is left."""
    waiting = {name for name, each in evidence.schedules.items() if each.graph and each.policy.overlap.is_serial}
    left: dict[str, dict[str, int]] = defaultdict(dict)
    wrong = []
    for commit in evidence.of(Collection.JOBS):
        after = commit.after or {}
        nominal_ms = fired_at(last_job_id(commit.id))
        if nominal_ms is None or (commit.after or commit.before or {}).get("schedule") not in waiting:
            continue
        of_schedule = left[str((commit.after or commit.before or {})["schedule"])]
        if after.get("state") == JobState.DISPATCHED and (commit.before or {}).get("state") != JobState.DISPATCHED:
            earlier = [id for id, at_ms in of_schedule.items() if at_ms < nominal_ms]
            wrong += [f"{commit.id} was dispatched at {commit.at_s:.3f} s, before {id} had ended" for id in earlier]
        if after.get("state") in LIVE:
            of_schedule[commit.id] = nominal_ms
        else:
            of_schedule.pop(commit.id, None)
    return wrong


def dependencies_kept(evidence: Evidence) -> list[str]:
    """No job is dispatched before what it waits for has succeeded, or has ended where it ignores failures.

    Of a batch it waits for the jobs at least that were there when it was submitted.
    """
    return waited_for(evidence.of(Collection.JOBS))


def waited_for(commits: Iterable[Commit]) -> list[str]:
    succeeded: set[str] = set()
    ended: set[str] = set()
    of_batch: defaultdict[str, set[str]] = defaultdict(set)
    there_before: dict[tuple[str, str], set[str]] = {}
    wrong = []
    for commit in commits:
        job = commit.after or {}
        if job.get("state") in TERMINAL:
            ended.add(commit.id)
        if job.get("state") == JobState.SUCCEEDED:
            succeeded.add(commit.id)
        awaited: set[str] = set()
        for id in job.get("waits_for", ()):
            if id.startswith("batch:"):
                awaited |= there_before.setdefault((commit.id, id), set(of_batch[id]))
            elif id != commit.id:
                awaited.add(id)
        if job.get("batch"):
            of_batch[job["batch"]].add(commit.id)
        missing = awaited - (ended if job.get("ignores_failures") else succeeded)
        if missing and occupies(commit.after):
            wrong.append(
                f"{commit.id} was dispatched at {commit.at_s:.3f} s, before {sorted(missing)}, its dependencies"
            )
    return wrong
