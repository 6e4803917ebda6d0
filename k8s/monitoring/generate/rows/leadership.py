"""Who leads since when, and what the last change of leader cost."""

from k8s.monitoring.generate.layout import Row
from k8s.monitoring.generate.panels import lines
from k8s.monitoring.generate.queries import WHO, chosen, per_process, told


def _of_the_leader(metric: str) -> str:
    """What the replica that leads tells: its own takeover is the latest."""
    return f"{chosen(metric)} and on (namespace, instance) {chosen('hascheduler_leading')} == 1"


_SUSPICIONS = chosen("hascheduler_leader_suspicions_total")

LEADERSHIP = Row(
    "Changes of leader",
    [
        lines(
            "The last change of leader",
            {"{{phase}}": f"max by (phase) ({_of_the_leader('hascheduler_failover_seconds')})"},
            "How long the present leader took to know that the lease is free (detection), from there to deciding "
            "(takeover), and from there to its first decision. Well: tenths of a second. A detection of a whole lease "
            "duration means that there was no proof of death: a pause, or a network in the way.",
            unit="s",
        ),
        lines(
            "Shards led by each replica",
            {WHO: per_process("hascheduler_shards_led"), "in all": told("hascheduler_shards")},
            "Well: together as many as there are, spread over the replicas. With one shard its leader has 1.",
        ),
        lines(
            "Shards followed by each replica",
            {WHO: per_process("hascheduler_shards_followed"), "in all": told("hascheduler_shards")},
            "Well: all of them; with SHARD_CANDIDATES about that number for each shard, spread over the replicas.",
        ),
        lines(
            "Changes of leader by cause",
            {"{{cause}}": f"sum by (cause) (increase({chosen('hascheduler_failovers_total')}[$__rate_interval]))"},
            "How the lease became free. Well: released, by updates. Died: processes were killed. Stood still: they "
            "were paused. Lapsed: they were cut off.",
        ),
        lines(
            "Suspicions of a leader that stands still",
            {"{{outcome}}": f"sum by (outcome) (increase({_SUSPICIONS}[$__rate_interval]))"},
            "Leaders that were followed since they gave no sign, and what came of it. Well: none. Wrong ones: machines "
            "are too busy to let replicas beat in time.",
        ),
        lines(
            "Fires late through it",
            {"fires": f"max({_of_the_leader('hascheduler_failover_fires_late')})"},
            "Fires that were due before the present leader could decide. Well: a few, for a change that was quick; "
            "they fired then, as their misfire policies say.",
        ),
    ],
)
