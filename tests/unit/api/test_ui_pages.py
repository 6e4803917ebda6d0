"""The dashboard and /docs take everything from the package, say so to the browser, and are the same for everybody."""

import gzip
import json
import re
import shutil
import subprocess
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

import httpx
import pytest

from hascheduler.api.ui import pages
from hascheduler.api.ui.pages import ASSETS
from tests.unit.api.requests import check_problem
from tests.unit.api.tokens import Guarded

UI = files("hascheduler.api.ui")
BROWSER = {"accept": "text/html,application/xhtml+xml", "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
COMPRESSED_BYTES_MAX = 120_000


@pytest.mark.parametrize("path", sorted(pages.PAGES - {"/"}))
async def test_each_view_is_the_same_document_also_for_a_link_of_another_site(
    client: httpx.AsyncClient, path: str
) -> None:
    answer = await client.get(path, params={"state": "failed", "after": "x"}, headers=BROWSER)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["cache-control"] == "no-cache"
    assert answer.content == (await client.get("/ui")).content


async def test_browsers_are_led_to_the_page_and_programs_are_not(client: httpx.AsyncClient) -> None:
    answer = await client.get("/", headers=BROWSER)
    assert (answer.status_code, answer.headers["location"]) == (307, "/ui")
    check_problem(await client.get("/", headers={"accept": "application/json"}), 404)


async def test_neither_page_nor_assets_need_a_token(guarded: Guarded) -> None:
    async with guarded.showing(None) as stranger:
        for path in sorted(pages.open_paths() - {"/"}):
            assert (await stranger.get(path)).status_code == 200, path
        assert (await stranger.get("/v1/cluster/live")).status_code == 401


@pytest.mark.parametrize("path", ["/ui", "/docs"])
async def test_a_page_loads_its_own_files_alone_and_holds_no_script_or_style(
    client: httpx.AsyncClient, path: str
) -> None:
    page = (await client.get(path)).text
    loaded = {each for each in re.findall(r'(?:src|href)="([^"]*)"', page) if each != "data:,"}
    assert loaded == {f"docs/{name}" for name in ASSETS} if path == "/docs" else loaded
    for each in loaded:
        answer = await client.get(f"/{each.removeprefix('/')}")
        assert answer.status_code == 200, each
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert path == "/docs" or "immutable" in answer.headers["cache-control"]
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\bstyle=|\bon\w+=|javascript:|://", page)


UI_PATHS = ["/ui", pages.asset_path("app.js"), pages.asset_path("style.css")]


@pytest.mark.parametrize("path", [*UI_PATHS, "/docs", *(f"/docs/{name}" for name in ASSETS)])
async def test_the_policy_allows_this_origin_alone(client: httpx.AsyncClient, path: str) -> None:
    headers = (await client.get(path)).headers
    policy = {kind: rest.strip() for kind, _, rest in (
        each.strip().partition(" ") for each in headers["content-security-policy"].split(";"))}  # fmt: skip
    assert policy["default-src"] == policy["base-uri"] == policy["frame-ancestors"] == "'none'"
    assert {policy[kind] for kind in ("script-src", "style-src", "connect-src")} == {"'self'"}
    assert not re.search("unsafe|://", headers["content-security-policy"])
    assert headers["referrer-policy"] == "no-referrer"
    if path in UI_PATHS:
        assert (policy["form-action"], policy["require-trusted-types-for"]) == ("'self'", "'script'")
        assert headers["cross-origin-opener-policy"] == headers["cross-origin-resource-policy"] == "same-origin"
    else:
        assert (policy["form-action"], headers["x-frame-options"]) == ("'none'", "DENY")


def test_no_module_makes_markup_of_text_or_asks_another_host() -> None:
    for name, asset in pages.assets().items():
        if name.endswith(".js") and not name.startswith("vendor/"):
            text = asset.body.decode()
            assert not re.search(
                r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text
            ), name
            assert not re.search(r"https?://", text), name
            assert not re.search(r"\bstyle=\$?[\"{]", text), f"{name}: the policy allows no style that stands in markup"


async def test_assets_are_sent_packed_to_those_who_unpack_them(client: httpx.AsyncClient) -> None:
    path = pages.asset_path("app.js")
    packed = await client.get(path, headers={"accept-encoding": "gzip"})
    plain = await client.get(path, headers={"accept-encoding": "identity"})
    assert packed.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in plain.headers
    assert packed.content == plain.content == gzip.decompress(pages.assets()["app.js"].packed)
    assert packed.headers["vary"] == plain.headers["vary"] == "Accept-Encoding"


def test_each_view_has_an_address_and_each_address_a_view() -> None:
    named = re.findall(r"^  (\w+): \{ title: ", pages.assets()["app.js"].body.decode(), re.MULTILINE)
    assert sorted(named) == sorted(("now", *pages.VIEWS))


def test_the_whole_page_is_light() -> None:
    assert sum(len(asset.packed) for asset in pages.assets().values()) <= COMPRESSED_BYTES_MAX


def test_what_others_wrote_is_as_it_came() -> None:
    lock = json.loads((UI / "vendor.json").read_text(encoding="utf-8"))
    named: dict[str, str] = {}
    for package in lock["packages"]:
        assert package["version"]
        assert package["licence"] in {"MIT", "Apache-2.0"}
        assert any(name.endswith(".LICENSE") for name in package["files"])
        named |= {name: file["sha256"] for name, file in package["files"].items()}
    folder = UI / "static" / "vendor"
    found = {file.name: sha256(file.read_bytes()).hexdigest() for file in folder.iterdir() if file.is_file()}
    assert found == named


def test_every_module_that_a_module_names_is_there() -> None:
    for name, asset in pages.assets().items():
        if name.endswith(".js"):
            folder = name.rpartition("/")[0]
            code = re.sub(r"/\*\*.*?\*/", "", asset.body.decode(), flags=re.DOTALL)  # types are named in comments
            for relative in re.findall(r'(?:from ?|import\()"(\.[^"]+)"', code):
                parts = [*folder.split("/")] if folder else []
                for part in relative.split("/"):
                    if part == "..":
                        parts.pop()
                    elif part != ".":
                        parts.append(part)
                assert "/".join(parts) in pages.assets(), f"{name} names {relative}"


# The page /docs


FOLDER = files("hascheduler.api") / "swagger_ui"


@pytest.mark.parametrize(
    "path", ["/docs/oauth2-redirect", "/docs/README", "/docs/LICENSE", "/docs/../app.py", "/docs/%2e%2e/app.py"]
)
async def test_nothing_else_is_there(client: httpx.AsyncClient, path: str) -> None:
    assert (await client.get(path)).status_code == 404


def test_the_files_are_those_of_the_release_that_is_noted() -> None:
    noted = dict(re.findall(r"^([0-9a-f]{64})  (\S+)$", (FOLDER / "README").read_text(), re.MULTILINE))
    assert set(noted.values()) == {entry.name for entry in FOLDER.iterdir()} - {"README", "page.html", "start.js"}
    for hash, name in noted.items():
        assert sha256((FOLDER / name).read_bytes()).hexdigest() == hash, name


# The parts of the dashboard that are computed: node runs them


_STATIC = Path(str(files("hascheduler.api.ui") / "static"))
_PATIENCE_S = 60
_RUN = """
import { readFileSync } from "node:fs";
const calls = JSON.parse(readFileSync(0, "utf8"));
const answers = [];
for (const [path, name, values] of calls) {
  const module = await import(path);
  answers.push((await module[name](...values)) ?? null);
}
process.stdout.write(JSON.stringify(answers));
"""


@cache
def _node() -> str:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed here")
    return node


def _called(module: str, name: str, *arguments: Any) -> Any:
    return _all_called([(module, name, arguments)])[0]


def _all_called(calls: list[tuple[str, str, tuple[Any, ...]]]) -> list[Any]:
    given = [((_STATIC / module).as_uri(), name, values) for module, name, values in calls]
    done = subprocess.run(
        [_node(), "--no-warnings", "--experimental-default-type=module", "--input-type=module", "-e", _RUN],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        timeout=_PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answers: list[Any] = json.loads(done.stdout)
    return answers


_CRON = [
    ("30 2 * * *", "every day at 02:30 in Europe/Paris"),
    ("@daily", "every day at 00:00 in Europe/Paris"),
    ("@hourly", "every hour, on the hour in Europe/Paris"),
    ("*/5 * * * *", "every 5 minutes"),
    ("* * * * * */10", "every 10 seconds"),
    ("30 2 * * * 15", "every day at 02:30:15 in Europe/Paris"),
    ("30 2 * * MON-FRI", "Monday to Friday at 02:30 in Europe/Paris"),
    ("0 8,20 * * sun,sat", "every Saturday and Sunday at 08:00 and 20:00 in Europe/Paris"),
    ("0 0 * * 7", "every Sunday at 00:00 in Europe/Paris"),
    ("0 12 * * fri#2", "on the second Friday of the month at 12:00 in Europe/Paris"),
    ("0 12 * * 5L", "on the last Friday of the month at 12:00 in Europe/Paris"),
    ("0 9 LW * ?", "on the last weekday of the month at 09:00 in Europe/Paris"),
    ("0 0 15W * *", "on the weekday nearest to the 15th of the month at 00:00 in Europe/Paris"),
    ("0 0 L-3 * *", "3 days before the last of the month at 00:00 in Europe/Paris"),
    ("0 0 1,15 * *", "on the 1st and 15th of the month at 00:00 in Europe/Paris"),
    ("0 0 1 1 *", "on the 1st of January at 00:00 in Europe/Paris"),
    ("0 0 13 * 5", "on the 13th of the month, and every Friday at 00:00 in Europe/Paris"),
    ("*/15 9-17 * * 1-5", "every 15 minutes from 09:00 to 17:59, Monday to Friday in Europe/Paris"),
    ("15 */6 * * *", "every 6 hours from 00:15 on in Europe/Paris"),
]
_ODD = [
    "*/7 * * * *", "0 22-2 * * *", "0 0 */2 * 0-6", "0 */5 * * *", "1-5 3 * * *", "* 3,5 * * *", "nonsense", "", "0",
]  # fmt: skip


def test_cron_expressions_are_said_in_words() -> None:
    words = _all_called([("parts/trigger.js", "cronWords", (expression, "Europe/Paris")) for expression, _ in _CRON])
    assert words == [expected for _, expected in _CRON]


def test_expressions_too_odd_for_a_sentence_are_shown_as_they_are_written() -> None:
    words = _all_called([("parts/trigger.js", "cronWords", (expression, "UTC")) for expression in _ODD])
    assert words == [None] * len(_ODD)
    trigger = {"type": "cron", "expression": "*/7 * * * *", "timezone": "UTC"}
    assert _called("parts/trigger.js", "triggerWords", trigger) == "cron */7 * * * * in UTC"


def test_other_triggers_and_what_narrows_them_are_said_in_words() -> None:
    interval = {"type": "interval", "every": "1m30s", "jitter": "10s", "max_fires": 3}
    several = {
        "type": "any",
        "of": [{"type": "interval", "every": "1h"}, {"type": "cron", "expression": "30 2 * * *", "timezone": "UTC"}],
        "calendars": {"only": ["work"], "except": ["holidays-de", "holidays-fr"]},
    }
    past = {"type": "times", "at": ["2001-01-01T00:00:00Z", "2002-01-01T00:00:00Z"]}
    assert _all_called([("parts/trigger.js", "triggerWords", (each,)) for each in (interval, several, past)]) == [
        "every 1 min 30 s, up to 10 s later, at most 3 fires",
        "every hour or every day at 02:30 in UTC, only on days of work, not on days of holidays-de and holidays-fr",
        "2 times, all past",
    ]


_BASE = {
    "trigger": {"type": "cron", "expression": "1 * * * *", "jitter": "0s"},
    "labels": {"a": "1"},
    "overlap": "allow",
}


def test_an_edit_goes_on_top_of_what_others_changed_meanwhile() -> None:
    mine = {**_BASE, "trigger": {**_BASE["trigger"], "expression": "2 * * * *"}, "labels": {}}  # type: ignore[dict-item]
    theirs = {**_BASE, "overlap": "skip", "labels": {"a": "1", "b": "2"}}
    assert _called("parts/difference.js", "merged", _BASE, mine, theirs) == {
        "trigger": {"type": "cron", "expression": "2 * * * *", "jitter": "0s"},
        "labels": {"b": "2"},
        "overlap": "skip",
    }


def test_a_patch_of_an_edit_removes_with_null_and_sends_a_trigger_of_another_type_whole() -> None:
    mine = {"trigger": {"type": "interval", "every": "5s", "jitter": "0s"}, "labels": {"b": "2"}, "overlap": "allow"}
    assert _called("parts/difference.js", "patchOf", _BASE, mine) == {
        "trigger": {"type": "interval", "every": "5s", "jitter": "0s"},
        "labels": {"a": None, "b": "2"},
    }
