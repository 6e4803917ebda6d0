"""Who leads, and whether the replicas could."""

from tests.unit.monitoring.cases.case import Case, Fires, by_processor, of, told

LEADING = "hascheduler_leading"
TERM = "hascheduler_term"
READY = "hascheduler_ready"
SHARDS, LED = "hascheduler_shards", "hascheduler_shards_led"
NOBODY = "No replica leads in hascheduler: nothing fires and nothing is dispatched"

CASES = (
    Case(
        "NobodyLeads",
        "no replica leads",
        "8m",
        {told(LEADING, 0): "1x20 0x40", told(LEADING, 1): "0x60"},
        (Fires(NOBODY),),
    ),
    Case(
        "NobodyLeads",
        "all replicas are gone",
        "9m",
        {told(LEADING, 0): "1x20 stale", told(LEADING, 1): "0x20 stale"},
        (Fires(NOBODY),),
    ),
    Case(
        "NobodyLeads",
        "there never was one",
        "5m",
        {'up{job="prometheus"}': "1x60"},
        (Fires("No replica leads: nothing fires and nothing is dispatched", {}),),
    ),
    Case(
        "NobodyLeads",
        "somebody leads in another namespace",
        "8m",
        {told(LEADING, 0): "0x60", told(LEADING, 1, "other"): "1x60"},
        (Fires(NOBODY),),
    ),
    Case(
        "NobodyLeads",
        "in the midst of a takeover",
        "5m45s",
        {told(LEADING, 0): "1x20 0x40", told(LEADING, 1): "0x23 1x37"},
    ),
    Case(
        "NobodyLeads",
        "the leader has changed, and the old one is gone",
        "8m",
        {told(LEADING, 0): "1x20 stale", told(LEADING, 1): "0x22 1x38"},
    ),
    Case(
        "ShardWithoutLeader",
        "one of four",
        "8m",
        {told(SHARDS, 0): "4x60", told(SHARDS, 1): "4x60", told(LED, 0): "2x60", told(LED, 1): "2x20 1x40"},
        (Fires("Only 3 of the shards in hascheduler have a leader"),),
    ),
    Case(
        "ShardWithoutLeader",
        "a takeover, and a replica that is gone",
        "9m",
        {told(SHARDS, 0): "4x60", told(SHARDS, 1): "4x20 stale", told(LED, 0): "2x22 4x40", told(LED, 1): "2x20 stale"},
    ),
    Case(
        "ShardWithoutLeader",
        "the only one, which another alert is about",
        "8m",
        {told(SHARDS, 0): "1x60", told(LED, 0): "0x60"},
    ),
    Case(
        "LeaderFlapping",
        "six changes",
        "20m",
        {told(TERM, 0): "5x20 6 7 8 9 10 11x90", told(TERM, 1): "5x21 7 8 9 10 11x90"},
        (Fires("6 changes of leader within 30 minutes in hascheduler"),),
    ),
    Case("LeaderFlapping", "a rolling update", "20m", {told(TERM, 0): "5x20 6x4 7x4 8x90"}),
    Case(
        "LeaderFlapping",
        "all replicas have just begun and have not read the lease yet",
        "20m",
        {told(TERM, 0): "900x20 0x3 901x80", told(TERM, 1): "900x20 0x3 901x80"},
    ),
    Case(
        "ReplicaNotReady",
        "one of two, for long",
        "10m",
        {told(READY, 0): "0x60", told(READY, 1): "1x60"},
        (Fires("Replica scheduler-0 has not been ready for 5 minutes", of(0)),),
    ),
    Case("ReplicaNotReady", "while it reads everything", "6m", {told(READY, 0): "1x10 0x16 1x40"}),
    Case(
        "Unreachable",
        "a processor",
        "10m",
        {by_processor("up", 3): "0x60", told("up", 1): "1x60"},
        (
            Fires(
                "processor-3 (hascheduler-processor) has not answered a scrape for 5 minutes",
                of(3, "processor"),
            ),
        ),
    ),
    Case("Unreachable", "while it restarts", "4m45s", {told("up"): "1x10 0x8 1x40"}),
    Case("Unreachable", "something that is not ours", "10m", {'up{job="kube-scheduler"}': "0x60"}),
    Case(
        "LoopWedged",
        "it grows older and older",
        "10m",
        {told("hascheduler_loop_age_seconds", 2): "0+15x60"},
        (Fires("The dispatch loop of scheduler-2 has not come round for 10m 0s", of(2)),),
    ),
    Case("LoopWedged", "it turns", "10m", {told("hascheduler_loop_age_seconds", 2): "0.5x60"}),
    Case("LoopWedged", "it stood and turns again", "2m15s", {told("hascheduler_loop_age_seconds"): "0+15x9 0x60"}),
    Case(
        "StreamLagging",
        "for long",
        "10m",
        {told("hascheduler_stream_lag_seconds", 1): "2.5x60"},
        (Fires("The change stream of scheduler-1 is 2.5s behind", of(1)),),
    ),
    Case("StreamLagging", "as usual", "10m", {told("hascheduler_stream_lag_seconds", 1): "0.02x60"}),
    Case("StreamLagging", "for a moment", "5m30s", {told("hascheduler_stream_lag_seconds"): "0.02x10 2x12 0.02x40"}),
)
