"""What a user did wrong is one line and status 2, and nothing is written."""

import shlex

import pytest

from tests.unit.api.doubles import World
from tests.unit.cli.invoking import Replica


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("lane put bulk --weight 0", "weight: 0 is too small"),
        ("lane put bulk --weight heavy", "--weight: 'heavy' is not a whole number"),
        ("lane put bulk --policy luck", "policy: 'luck' is unknown"),
        ("lane put bulk --promote-after 1m,2m", "promote_after: a list of 2"),
        ("lane edit nobody --weight 3", "no lane 'nobody'"),
        ("lane delete bulk", "no lane 'bulk'"),
        ("tenant put a/b", "NAME: 'a/b' is not a name"),
        ("tenant put acme --max-running 0", "max_running: 0 is too small"),
        ("tenant put acme --submit-rate 100", "--submit-rate: '100' is not N/SPAN"),
        ("tenant put acme --submit-rate 0/1s", "submit_rate.count: 0 is too small"),
        ("tenant edit acme", "no tenant 'acme'"),
        ("calendar put office --weekdays mo-fr", "weekdays: 'mo-fr' is no day of the week"),
        ("calendar put office --include 24.12.", "include: '24.12.' is no day"),
        ("calendar edit nobody --weekdays mon", "no calendar 'nobody'"),
        ("schedule preview --cron '0 9 * * *' --only-on office", "calendar"),
        ("definition put repack --max-concurrency 0", "max_concurrency: 0 is too small"),
        ("definition put repack --attempts many", "--retry-attempts: 'many' is not a whole number"),
        ("definition put repack --retry-factor much", "--retry-factor: 'much' is not a number"),
        ("definition put repack --retry-factor nan", "--retry-factor: 'nan' is not a number"),
        ("definition put repack --retry-factor 11", "retry.factor: 11 is out of range"),
        ("definition put repack --retry-backoff 2m", "retry: the backoff 2m is longer than max 1m"),
        ("definition put repack --timeout soon", "timeout: 'soon' is not a duration"),
        ("definition put repack --key-limit customer", "--key-limit: 'customer' is not KEY=LIMIT"),
        ("definition put repack --key-limit customer=2", "key_limits.0.key: 'customer' names no field of a job"),
        ("definition put repack --unique customer", "unique.by.0: 'customer' names no field of a job"),
        ("definition put repack --on-duplicate debounce", "unique.period: is missing for debounce"),
        ("definition put repack --on-duplicate drop", "unique.on_duplicate: "),
        ("definition put repack --unique-period soon", "unique.period: 'soon' is not a duration"),
        ("definition put repack --unique-max-wait 1h", "unique.max_wait: means nothing for keep_first"),
        ("definition put repack --rate-limit 100", "--rate-limit: '100' is not N/SPAN"),
        ("definition put repack --rate-limit many/1s", "--rate-limit: 'many' is not a whole number"),
        ("definition put repack --rate-limit 5/soon", "rate_limit.per: 'soon' is not a duration"),
        ("definition put repack --resources cpu", "--resources: 'cpu' is no amount"),
        ("definition put repack --default-cost 8d", "default_cost: 8d is out of range"),
        ("definition put a/b", "NAME: 'a/b' is not a name"),
        ("definition edit nobody --attempts 3", "no definition 'nobody'"),
        ("definition delete nobody --yes", "no definition 'nobody'"),
        ("why job:0001", "no job 'job:0001'"),
        ("why ..", "JOB: '..' is no id of a job"),
        ("why a/b", "JOB: 'a/b' is no id of a job"),
        ("why job:0001 --json --watch", "--watch: can't be had with --json"),
        ("job get '?x'", "JOB: '?x' is no id of a job"),
        ("job cancel job:0001", "no job 'job:0001'"),
        ("job submit a/b", "definition: 'a/b' is not a name"),
        ("job submit log --resources cpu=0", "--resources: cpu: 0"),
        ("job submit log --tenant 'a b'", "tenant: 'a b' is not a name"),
        ("job submit log --payload '{'", "--payload: is not JSON"),
        ("job submit log --idempotency-key 'a b'", "--idempotency-key: 'a b' can't be a key"),
        ("job submit log --wait soon", "--wait: 'soon' is not a duration"),
        ("job submit log --wait 1h", "wait: "),
        ("job submit log --depends-on job:9", "depends_on.0: "),
        ("job submit log --expires-at 2020-01-01T00:00:00Z", "expires_at: "),
        ("job wait job:0001", "no job 'job:0001'"),
        ("job wait '?x'", "JOB: '?x' is no id of a job"),
        ("job wait job:0001 --timeout soon", "--timeout: 'soon' is not a duration"),
        ("job cancel", "JOB: nothing says which jobs to cancel"),
        ("job cancel job:0001 --definition log", "JOB: ids and options can't be had together"),
        ("job cancel job:0001 --dry-run", "--dry-run: counts the jobs that match"),
        ("job cancel --label team", "--label: 'team' is not KEY=VALUE"),
        ("job cancel --label a=1 --label a=2", "--label: 'a' is there twice"),
        ("job cancel --tenant 'a b' --yes", "filter.tenant: 'a b' is not a name"),
        ("job retry '?x' job:0001", "JOB: '?x' is no id of a job"),
        ("job retry job:0001", "no job 'job:0001'"),
        (
            "job reprioritize 9 job:0001 job:0002",
            "PRIORITY: 9 stands before the jobs; expected it after them: job:0001 job:0002 9",
        ),
        ("job reprioritize high", "PRIORITY: 'high' is not a whole number"),
        ("job reprioritize job:0001 11", "PRIORITY: '11' is no priority"),
        ("schedule add bad --cron '* * *' --definition log", "trigger.expression: "),
        ("schedule add bad --cron '61 * * * *' --definition log", "trigger.expression: "),
        ("schedule add bad --cron '0 0 30 2 *' --definition log", "trigger.expression: "),
        ("schedule add bad --cron @daily --timezone Mars/X --definition log", "trigger.timezone: "),
        ("schedule add bad --cron @daily --timezone ../../etc/passwd --definition log", "trigger.timezone: "),
        ("schedule add bad --at 9999-01-01T00:00:00Z --definition log", "trigger.at: "),
        ("schedule add bad --at 2016-12-31T23:59:60Z --definition log", "trigger.at: "),
        ("schedule add bad --at 2029-01-01T00:00:00Z --definition log", "trigger.at: "),
        (
            "schedule add b --every 1s --start-at 2032-01-01T00:00:00Z --end-at 2031-01-01T00:00:00Z --definition log",
            "trigger.end_at",
        ),
        ("schedule add bad --every 1s --grace -1s --definition log", "misfire.grace: "),
        ("schedule add bad --every 1s --jitter 2s --definition log", "trigger.jitter: "),
        ("schedule add bad --every 1s --payload '\"${nobody}\"' --render --definition log", "job.payload: "),
        ("schedule add bad --every 1s --payload '{' --definition log", "--payload: "),
        ("schedule add bad --every 1s --payload NaN --definition log", "--payload: "),
        ("schedule add bad --every 1s --payload 1e999 --definition log", "body: "),
        ("schedule add bad --every 1s --payload @/nowhere --definition log", "--payload: "),
        ("schedule add bad --every 1s --priority 11 --definition log", "job.priority: "),
        ("schedule add bad --every 1s --priority high --definition log", "--priority: "),
        ("schedule add bad --every 1s --label team --definition log", "--label: "),
        ("schedule add bad --every 1s --at 2031-01-01T00:00:00Z --definition log", "trigger.of.0.every: "),
        ("schedule add bad --definition log", "--cron: "),
        ("schedule get nobody", "no schedule 'nobody'"),
        ("schedule preview nobody", "no schedule 'nobody'"),
        ("schedule edit nobody --every 1s", "no schedule 'nobody'"),
        ("schedule pause nobody", "no schedule 'nobody'"),
        ("schedule resume nobody", "no schedule 'nobody'"),
        ("schedule trigger nobody", "no schedule 'nobody'"),
        ("schedule verdicts nobody", "no schedule 'nobody'"),
        ("schedule delete nobody --yes", "no schedule 'nobody'"),
        ("pause", "--all: missing; expected --all, or for one schedule: hascheduler schedule pause NAME"),
        ("pause --all", "--because: missing; expected a reason"),
        ("resume", "--all: missing; expected --all, or for one schedule: hascheduler schedule resume NAME"),
        (f"schedule add bad --cron '{'* ' * 5_120}' --definition log", "trigger.expression: "),
        ("schedule add bad --every 1s", "--definition: missing"),
        *((f"schedule get '{name}'", "NAME: ") for name in ("../definitions", "a/b", "", "a b", "\u00fc", "x" * 129)),
    ],
)
async def test_a_mistake_is_one_line_and_status_2(replica: Replica, world: World, command: str, said: str) -> None:
    ended = await replica.run(*shlex.split(command))
    assert (ended.status, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert said in ended.err
    assert len(ended.err) < 1_000
    assert world.everything() == World().everything()


async def test_a_taken_name_is_one_line_and_status_2(replica: Replica) -> None:
    tick = ("schedule", "add", "tick", "--every", "1s", "--definition", "log")
    await replica.done(*tick)
    ended = await replica.run(*tick)
    assert (ended.status, ended.err.count("\n")) == (2, 1)
    assert "there is a schedule 'tick' already" in ended.err
