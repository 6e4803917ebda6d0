"""Arguments that are names of resources, and their completion in the shell.

Nothing is completed if the replica does not answer within half a second. The request uses the standard library's HTTP
client (importing another takes longer than the answer) in a thread that is abandoned at the time limit, because the
user waits for this after each tab key.
"""

import json
from collections.abc import Iterable
from threading import Thread
from typing import Annotated, Any
from urllib.parse import quote, urlencode

from hascheduler.cli import environment
from hascheduler.cli.options import Complete, argument

_PATIENCE_S = 0.5


def names_of(kind: str) -> Complete:
    """Return a completer for the names of all resources of a kind."""
    return lambda ctx, args, incomplete: _names(f"{kind}s", ctx, incomplete)


def one_of(choices: Iterable[str]) -> Complete:
    """Return a completer for the ``choices`` that begin with the incomplete word."""
    return lambda ctx, args, incomplete: [each for each in choices if each.startswith(incomplete)]


def _complete_noun(ctx: Any, args: list[str], incomplete: str) -> list[str]:
    """Return names of the kind that the command's group is named after."""
    return _names(f"{ctx.parent.info_name}s", ctx, incomplete)


complete_schedule = names_of("schedule")
complete_definition = names_of("definition")
complete_tenant = names_of("tenant")


def complete_job(ctx: Any, args: list[str], incomplete: str) -> list[str]:
    """Return the ids of the newest jobs."""
    return [id for id in _names("jobs", ctx, "") if id.startswith(incomplete)]


_SOME = "Name of the schedule, or use options to select several"
ScheduleName = Annotated[str, argument("NAME", "The schedule", complete_schedule)]
ScheduleNameOrNone = Annotated[str | None, argument("NAME", _SOME, complete_schedule)]
NounName = Annotated[str, argument("NAME", "Name", _complete_noun)]
NewName = Annotated[str, argument("NAME", "Name")]
JobId = Annotated[str, argument("JOB", "Id of the job", complete_job)]
JobIds = Annotated[list[str] | None, argument("JOB", "Ids of jobs", complete_job)]


def _names(kind: str, ctx: Any, incomplete: str) -> list[str]:
    context = ctx.params.get("in_context") or ctx.find_root().params.get("context")
    found: list[str] = []
    asking = Thread(target=_ask, args=(ctx.params.get("url"), context, kind, incomplete, found), daemon=True)
    asking.start()
    asking.join(_PATIENCE_S)
    return list(found)


def _ask(url: str | None, context: str | None, kind: str, incomplete: str, found: list[str]) -> None:
    from urllib.request import Request, urlopen

    query = {"limit": "200"}
    if incomplete:
        # The list begins after a name, and "~" sorts after every character of names.
        query["after"] = f"{incomplete[:-1]}{chr(ord(incomplete[-1]) - 1)}~"
    try:
        access = environment.access(url, context)
        first = access.url.partition(",")[0].strip()
        if not first.startswith(("http://", "https://")):
            return
        address = f"{first.rstrip('/')}/v1/{kind}?{urlencode(query, quote_via=quote)}"
        headers = {"Authorization": f"Bearer {token}"} if (token := access.token()) else {}
        request = Request(address, headers=headers)  # noqa: S310  # the scheme was checked
        with urlopen(request, timeout=_PATIENCE_S, context=access.tls()) as answer:  # noqa: S310  # as above
            names = [item.get("name", item.get("id")) for item in json.load(answer)["items"]]
    except Exception:  # without an answer there is nothing to offer; an error would garble the user's line
        return
    found.extend(name for name in names if isinstance(name, str) and name.startswith(incomplete) and name.isprintable())
