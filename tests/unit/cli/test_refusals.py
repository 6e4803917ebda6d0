"""What a user did wrong is one line and status 2, and nothing is written."""

import shlex

import pytest

from tests.unit.api.doubles import World
from tests.unit.cli.invoking import Replica


@pytest.mark.parametrize(
    ("command", "said"),
    [
        *((f"{command} --folder /dev/null", "--folder: /dev/null is not a directory") for command in ("dev", "demo")),
        ("lane set bulk", "hascheduler lane: no such command 'set'"),
        ("job get", "hascheduler job get: missing argument 'JOB'; see hascheduler job get --help"),
        ("job list --sate failed", "no such option: --sate (Possible options: "),
        ("cluster --json failovers", "extra argument(s) (failovers); see hascheduler cluster --help"),
        ("schedule reset tick --from yesterday", "invalid value for '--from': 'yesterday' is not one of 'now'; see"),
        ("lane put bulk --weight heavy", "--weight: 'heavy' is not a whole number"),
        ("lane edit nobody --weight 3", "no lane 'nobody'"),
        ("tenant put a/b", "NAME: 'a/b' is not a name"),
        ("tenant put acme --submit-rate 100", "--submit-rate: '100' is not N/SPAN"),
        ("definition put repack --attempts many", "--retry-attempts: 'many' is not a whole number"),
        ("definition put repack --retry-factor much", "--retry-factor: 'much' is not a number"),
        ("definition put repack --key-limit customer", "--key-limit: 'customer' is not KEY=LIMIT"),
        ("definition put repack --rate-limit 100", "--rate-limit: '100' is not N/SPAN"),
        ("definition put repack --resources cpu", "--resources: 'cpu' is not a resource amount"),
        ("why ..", "JOB: '..' is not a job id"),
        ("why job:0001 --json --watch", "--watch: cannot be combined with --json"),
        ("job submit log --resources cpu=0", "--resources: cpu: 0"),
        ("job submit log --payload '{'", "--payload: is not JSON"),
        ("job submit log --idempotency-key 'a b'", "--idempotency-key: 'a b' is not a valid key"),
        ("job submit log --wait soon", "--wait: 'soon' is not a duration"),
        ("job submit log --depends-on job:9", "depends_on.0: "),
        ("job wait job:0001 --timeout soon", "--timeout: 'soon' is not a duration"),
        ("job cancel", "JOB: no jobs to cancel are given"),
        ("job cancel job:0001 --definition log", "JOB: ids and options exclude each other"),
        ("job cancel job:0001 --dry-run", "--dry-run: counts the jobs that match"),
        ("job cancel --label team", "--label: 'team' is not KEY=VALUE"),
        ("job cancel --label a=1 --label a=2", "--label: 'a' is given twice"),
        ("job reprioritize 9 job:0001 job:0002", "PRIORITY: 9 comes before the jobs; expected it last: job"),
        ("job reprioritize high", "PRIORITY: 'high' is not a whole number"),
        ("job reprioritize job:0001 11", "PRIORITY: '11' is not a priority"),
        ("schedule add bad --cron '* * *' --definition log", "trigger.expression: "),
        ("schedule add bad --every 1s --payload '\"${nobody}\"' --render --definition log", "job.payload: "),
        ("schedule add bad --every 1s --payload '{' --definition log", "--payload: "),
        ("schedule add bad --every 1s --payload @/nowhere --definition log", "--payload: "),
        ("schedule add bad --definition log", "--cron: "),
        ("schedule preview --every 1s --max-fires many", "--max-fires: "),
        ("schedule preview --every 1s --exclude 2030-01-01T00:00:00Z", "--exclude: "),
        ("schedule preview --every 1s --timezone UTC", "--timezone: "),
        ("schedule preview --cron @daily --anchor 2030-01-01T00:00:00Z", "--anchor: "),
        ("schedule preview --jitter 1s", "--cron: "),
        ("schedule preview --every 1s --count 0", "'--count': Input should be greater than or equal to 1"),
        ("schedule preview --every 1s --from yesterday", "--from: "),
        ("schedule preview", "NAME: "),
        ("schedule pause", "NAME: no schedules to pause are given"),
        ("schedule pause tick --all", "NAME: a name and options exclude each other"),
        ("schedule resume tick --dry-run", "NAME: --dry-run and --yes require options"),
        ("schedule trigger --all --payload {}", "--payload: requires the name of one schedule"),
        ("schedule get nobody", "no schedule 'nobody'"),
        ("pause", "--all: missing; expected --all, or for one schedule: hascheduler schedule pause NAME"),
        ("pause --all", "--because: missing; expected a reason"),
        ("resume", "--all: missing; expected --all, or for one schedule: hascheduler schedule resume NAME"),
        ("schedule add bad --every 1s", "--definition: missing"),
        ("job list --since yesterday", "--since: 'yesterday' is not an instant; expected"),
        ("job list -o name --watch", "cannot be combined with -o name"),
        ("events --after yesterday", "is not an event id"),
        ("job batch nowhere.jsonl", "FILE: nowhere.jsonl: No such file"),
        ("schedule timeline --timezone ../../etc/passwd", "--timezone: "),
        ("processor drain nobody", "no processor 'nobody'"),
        ("token revoke none --yes", "no token 'none'"),
        ("token revoke a/b --yes", "is not a token id"),
        ("token revoke hsk_secret --yes", "this is a secret"),
        ("token revoke none", "no terminal to confirm"),
        *((f"schedule get '{name}'", "NAME: ") for name in ("../definitions", "", "\u00fc", "x" * 129)),
    ],
)
async def test_a_mistake_is_one_line_and_status_2(replica: Replica, world: World, command: str, said: str) -> None:
    ended = await replica.run(*shlex.split(command))
    assert (ended.status, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert said in ended.err
    assert len(ended.err) < 1_000
    assert world.everything() == World().everything()
