"""What everything rests on."""

from tests.unit.monitoring.cases.case import Case, Fires, told

LEADING = "hascheduler_leading"
APPEND = "hascheduler_journal_append_seconds_bucket"
ACCEPTS = "hascheduler_broker_accepting"
PUBLISHES = "hascheduler_publishes_total"

CASES = (
    Case(
        "JournalSlow",
        "every append",
        "20m",
        {told(APPEND, le="1"): "0x99", told(APPEND, le="2.5"): "0+1x99", told(APPEND, le="+Inf"): "0+1x99"},
        (Fires("One journal append in a hundred takes 2.485s or more in hascheduler"),),
    ),
    Case(
        "JournalSlow",
        "for a minute",
        "9m",
        {
            told(APPEND, le="1"): "0x99",
            told(APPEND, le="2.5"): "0x20 1 2 3x77",
            told(APPEND, le="+Inf"): "0x20 1 2 3x77",
        },
    ),
    Case(
        "JournalSlow",
        "as usual",
        "20m",
        {told(APPEND, le="0.01"): "0+9x99", told(APPEND, le="0.05"): "0+10x99", told(APPEND, le="+Inf"): "0+10x99"},
    ),
    Case(
        "BrokerNotAccepting",
        "from the leader",
        "5m",
        {told(LEADING, 0): "1x60", told(ACCEPTS, 0): "0x60", told(LEADING, 1): "0x60", told(ACCEPTS, 1): "1x60"},
        (Fires("The broker takes no messages from the leader in hascheduler: no job starts"),),
    ),
    Case(
        "BrokerNotAccepting",
        "from a standby, which publishes nothing",
        "5m",
        {told(LEADING, 0): "1x60", told(ACCEPTS, 0): "1x60", told(LEADING, 1): "0x60", told(ACCEPTS, 1): "0x60"},
    ),
    Case(
        "BrokerNotAccepting",
        "while it restarts",
        "4m",
        {told(LEADING): "1x60", told(ACCEPTS): "1x12 0x3 1x50"},
    ),
    Case(
        "PublishesUnknown",
        "one in five",
        "20m",
        {told(PUBLISHES, outcome="confirmed"): "0+4x99", told(PUBLISHES, outcome="unknown"): "0+1x99"},
        (Fires("20% of the publishes are not confirmed in hascheduler"),),
    ),
    Case(
        "PublishesUnknown",
        "while the broker restarts",
        "14m",
        {told(PUBLISHES, outcome="confirmed"): "0+4x99", told(PUBLISHES, outcome="unknown"): "0x20 5x79"},
    ),
    Case(
        "PublishesUnknown",
        "none",
        "20m",
        {told(PUBLISHES, outcome="confirmed"): "0+4x99", told(PUBLISHES, outcome="unknown"): "3x99"},
    ),
    Case(
        "Quarantined",
        "told by all",
        "5m",
        {told("hascheduler_quarantined", 0): "1x60", told("hascheduler_quarantined", 1): "1x60"},
        (Fires("1 documents can't be read and were set aside in hascheduler"),),
    ),
    Case("Quarantined", "for a moment", "3m30s", {told("hascheduler_quarantined"): "0x10 1x4 0x40"}),
    Case("Quarantined", "nothing is", "5m", {told("hascheduler_quarantined"): "0x60"}),
)
