"""At no commit do more jobs of a definition occupy slots than it may, nor two of a conflict group on one target,
nor more with one value at a key."""

from collections import Counter, defaultdict
from typing import Any

from hascheduler.model.collection import Collection
from hascheduler.model.job import OCCUPYING
from tests.checkers.evidence import Evidence


def caps_kept(evidence: Evidence) -> list[str]:
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
