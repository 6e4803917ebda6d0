"""An outage is logged at once, and then once a minute for each reason, however often it is tried again."""

from hascheduler.telemetry.log_lines import Reminders


def test_a_reason_is_logged_at_once_and_then_once_a_minute() -> None:
    reminders = Reminders()
    told = [at_s for at_s in range(0, 181, 2) if reminders.is_due("no answer", at_s * 1_000)]
    assert told == [0, 60, 120, 180]


def test_reasons_that_take_turns_are_told_once_a_minute_each() -> None:
    reminders = Reminders()
    told = [at_s for at_s in range(60) if reminders.is_due(("one", "other")[at_s % 2], at_s * 1_000)]
    assert told == [0, 1]


def test_a_new_outage_is_logged_at_once() -> None:
    reminders = Reminders()
    assert reminders.is_due("no answer", 0)
    reminders.over()
    assert reminders.is_due("no answer", 1)


def test_what_is_kept_has_a_bound() -> None:
    reminders = Reminders()
    assert all(reminders.is_due(f"reason {number}", 0) for number in range(1_000))
    assert len(reminders._logged_at) <= 16
