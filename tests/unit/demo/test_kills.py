"""The process to kill is found among all that a shell sees in a pod."""

import pytest

from hascheduler.demo.kubernetes.kills import find_process

PAUSE = "1 /pause "
SHELL = "44 sh -c for each in /proc/[0-9]*; do echo hascheduler; done "
SERVE = "7 /opt/hascheduler/bin/python /opt/hascheduler/bin/hascheduler serve "


@pytest.mark.parametrize(
    ("listing", "found"),
    [
        ([PAUSE, SERVE, SHELL], 7),
        ([PAUSE, "8 python -m hascheduler serve --http-port 8080", SHELL], 8),
        (["6 tini -- hascheduler serve ", SERVE, SHELL], 7),
        (["1 /opt/bin/hascheduler serve "], None),
        ([PAUSE, SHELL], None),
        ([PAUSE, "9 hascheduler processor processors.log "], None),
        (["x hascheduler serve", "", " "], None),
        (["12 cat /serve /hascheduler/serve "], None),
    ],
)
def test_the_newest_process_of_that_command_and_never_the_first_of_all(listing: list[str], found: int | None) -> None:
    assert find_process("\n".join(listing), "serve") == found
