"""The first try with a broker that refuses us ends at once; one that does not answer is waited for, and told of."""

from pathlib import Path
from urllib.parse import urlsplit

import pytest

from hascheduler.errors import InvalidInput
from hascheduler.rabbitmq.connection import require_access
from tests.integration.first_contact.test_mongodb import PROCESSES, check, said


def with_user(url: str, user: str) -> str:
    return urlsplit(url)._replace(netloc=f"{user}@{urlsplit(url).netloc.rpartition('@')[2]}").geturl()


@pytest.mark.parametrize("process", PROCESSES, ids=lambda process: process[0])
async def test_credentials_that_are_wrong(mongodb_uri: str, amqp_url: str, process: list[str]) -> None:
    url = with_user(amqp_url, "somebody:sEcret")
    told = await said(
        *process, HASCHEDULER_MONGODB_URI=mongodb_uri, HASCHEDULER_AMQP_URL=url, HASCHEDULER_TRANSPORT="rabbitmq"
    )
    check(told, f"HASCHEDULER_AMQP_URL: {urlsplit(amqp_url).netloc.rpartition('@')[2]} refuses user 'somebody'")


@pytest.mark.parametrize("process", PROCESSES, ids=lambda process: process[0])
async def test_a_virtual_host_that_there_is_not(mongodb_uri: str, amqp_url: str, process: list[str]) -> None:
    url = urlsplit(amqp_url)._replace(path="/no%20where").geturl()
    told = await said(
        *process, HASCHEDULER_MONGODB_URI=mongodb_uri, HASCHEDULER_AMQP_URL=url, HASCHEDULER_TRANSPORT="rabbitmq"
    )
    check(told, "has no virtual host 'no where' for user ")


async def test_a_broker_that_takes_us_or_is_away_ends_nothing(amqp_url: str) -> None:
    await require_access(amqp_url)
    await require_access("amqp://guest:guest@127.0.0.1:1/")


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("amqp://guest:sEcret@127.0.0.1:1/", "nothing listens at 127.0.0.1:1; expected the address of a broker"),
        ("amqp://guest:sEcret@no-such-host.invalid/", "there is no address for the host 'no-such-host.invalid'"),
    ],
)
async def test_dev_starts_nothing_beside_a_broker_that_is_not_there(
    mongodb_uri: str, tmp_path: Path, url: str, problem: str
) -> None:
    """Replicas would wait for it, each in its own log."""
    variables = {"HASCHEDULER_MONGODB_URI": mongodb_uri, "HASCHEDULER_AMQP_URL": url}
    told = await said("dev", "--folder", str(tmp_path), "--transport", "rabbitmq", **variables)
    check(told, f"HASCHEDULER_AMQP_URL: {problem}")


async def test_a_url_that_is_none() -> None:
    with pytest.raises(InvalidInput, match="HASCHEDULER_AMQP_URL: not an AMQP URL"):
        await require_access("http://127.0.0.1/")
