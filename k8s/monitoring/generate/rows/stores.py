"""Does what everything rests on answer in time?"""

from k8s.monitoring.generate.layout import Row
from k8s.monitoring.generate.panels import lines
from k8s.monitoring.generate.queries import WHO, by_process, chosen, per_process, quantile, rate, told

STORES = Row(
    "Journal, stream, broker",
    [
        lines(
            "Journal",
            {
                "append p99": quantile(0.99, "hascheduler_journal_append_seconds"),
                "apply p99": quantile(0.99, "hascheduler_journal_apply_seconds"),
            },
            "Append: until a majority of MongoDB has the decisions. Apply: until they are in the jobs. Well: tens of "
            "milliseconds. Above the red line it delays fires.",
            unit="s",
            limit=0.5,
        ),
        lines(
            "Step",
            {
                "p50": quantile(0.5, "hascheduler_step_seconds"),
                "p99": quantile(0.99, "hascheduler_step_seconds"),
            },
            "How long the leader thinks before a batch of decisions. Well: milliseconds.",
            unit="s",
        ),
        lines(
            "Loop age",
            {WHO: per_process("hascheduler_loop_age_seconds")},
            "Since the dispatch loop last came round. Well: about a second at most. The red line is a wedged loop.",
            unit="s",
            limit=30,
        ),
        lines(
            "Stream lag",
            {
                WHO: per_process("hascheduler_stream_lag_seconds"),
                f"decisions of {WHO}": per_process("hascheduler_decision_lag_seconds"),
            },
            "From a write to this replica's mirror. Well: some ten milliseconds. One alone: its node. All: MongoDB.",
            unit="s",
            limit=1,
        ),
        lines(
            "Publishes",
            {"{{outcome}}": rate("hascheduler_publishes_total", "outcome")},
            "Messages to processors. Well: confirmed. Unknown ones are sent again under the same id.",
            unit="ops",
        ),
        lines(
            "Publisher confirms",
            {
                "p50": quantile(0.5, "hascheduler_publish_confirm_seconds"),
                "p99": quantile(0.99, "hascheduler_publish_confirm_seconds"),
            },
            "Until the broker has confirmed a batch. Well: milliseconds.",
            unit="s",
        ),
        lines(
            "Broker accepts",
            {
                WHO: by_process(
                    f"({chosen('hascheduler_broker_accepting')}"
                    f" and on (namespace, instance) {chosen('hascheduler_leading')} == 1)"
                )
            },
            "Whether the leader may publish. 0: out of reach, or a memory or disk alarm blocks it. Well: 1.",
            unit="bool_yes_no",
        ),
        lines(
            "Quarantine",
            {"documents": told("hascheduler_quarantined")},
            "Documents that can't be read and were set aside; `hascheduler cluster` names them. Well: 0.",
            limit=1,
        ),
        lines(
            "Audit",
            {"{{kind}}": told("hascheduler_audit_findings", "kind")},
            "What is broken in the database, as the leader last found it; `hascheduler check` tells each. Well: 0.",
            limit=1,
        ),
        lines(
            "Mirrors that differ",
            {WHO: per_process("hascheduler_mirrors_differ")},
            "How many replicas' mirrors differ from this one's at one point of the stream. Well: 0. The one with the "
            "most was wrong, and has read everything again.",
            limit=1,
        ),
        lines(
            "Takeovers",
            {
                "term": told("hascheduler_term"),
                "takeovers of {{who}}": per_process("hascheduler_takeovers_total"),
            },
            "Well: flat, but for updates. Many steps within half an hour: the leader flaps.",
            least=None,
        ),
        lines(
            "Takeover time",
            {WHO: per_process("hascheduler_takeover_seconds")},
            "The last takeover of each replica, from winning the lease to deciding. Well: below a second.",
            unit="s",
        ),
    ],
)
