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

import pytest

from hascheduler.api.ui import pages
from hascheduler.api.ui.pages import ASSETS
from tests.unit.api.requests import Client, check_problem
from tests.unit.api.tokens import Guarded

UI = files("hascheduler.api.ui")
BROWSER = {"accept": "text/html,application/xhtml+xml", "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
COMPRESSED_BYTES_MAX = 120_000


@pytest.mark.parametrize("path", sorted(pages.PAGES - {"/"}))
async def test_each_view_is_the_same_document_also_for_a_link_of_another_site(client: Client, path: str) -> None:
    answer = await client.get(path, params={"state": "failed", "after": "x"}, headers=BROWSER)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["cache-control"] == "no-cache"
    assert answer.content == (await client.get("/ui")).content


async def test_browsers_are_led_to_the_page_and_programs_are_not(client: Client) -> None:
    answer = await client.get("/", headers=BROWSER)
    assert (answer.status_code, answer.headers["location"]) == (307, "/ui")
    check_problem(await client.get("/", headers={"accept": "application/json"}), 404)


async def test_neither_page_nor_assets_need_a_token(guarded: Guarded) -> None:
    async with guarded.showing(None) as stranger:
        for path in sorted(pages.open_paths() - {"/"}):
            assert (await stranger.get(path)).status_code == 200, path
        assert (await stranger.get("/v1/cluster/live")).status_code == 401


@pytest.mark.parametrize("path", ["/ui", "/docs"])
async def test_a_page_loads_its_own_files_alone_and_holds_no_script_or_style(client: Client, path: str) -> None:
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
async def test_the_policy_allows_this_origin_alone(client: Client, path: str) -> None:
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


async def test_assets_are_sent_packed_to_those_who_unpack_them(client: Client) -> None:
    path = pages.asset_path("app.js")
    packed = await client.get(path, headers={"accept-encoding": "gzip"})
    plain = await client.get(path, headers={"accept-encoding": "identity"})
    assert packed.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in plain.headers
    assert packed.content == plain.content == gzip.decompress(pages.assets()["app.js"].packed)
    assert packed.headers["vary"] == plain.headers["vary"] == "Accept-Encoding"


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


FOLDER = files("hascheduler.api") / "swagger_ui"


def test_the_files_are_those_of_the_release_that_is_noted() -> None:
    noted = dict(re.findall(r"^([0-9a-f]{64})  (\S+)$", (FOLDER / "README").read_text(), re.MULTILINE))
    assert set(noted.values()) == {entry.name for entry in FOLDER.iterdir()} - {"README", "page.html", "start.js"}
    for hash, name in noted.items():
        assert sha256((FOLDER / name).read_bytes()).hexdigest() == hash, name


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


def _called(calls: list[tuple[str, str, tuple[Any, ...]]]) -> list[Any]:
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
    ("30 2 * * *", "every day at 02:30 in Paris"),
    ("@hourly", "every hour, on the hour in Paris"),
    ("*/5 * * * *", "every 5 minutes"),
    ("30 2 * * MON-FRI", "every weekday at 02:30 in Paris"),
    ("0 8,20 * * sun,sat", "every Saturday and Sunday at 08:00 and 20:00 in Paris"),
    ("0 12 * * fri#2", "on the second Friday of the month at 12:00 in Paris"),
    ("0 12 * * 5L", "on the last Friday of the month at 12:00 in Paris"),
    ("0 9 LW * ?", "on the last weekday of the month at 09:00 in Paris"),
    ("0 0 15W * *", "on the weekday nearest to the 15th of the month at 00:00 in Paris"),
    ("0 0 L-3 * *", "3 days before the last of the month at 00:00 in Paris"),
    ("0 0 1,15 * *", "on the 1st and 15th of the month at 00:00 in Paris"),
    ("0 0 13 * 5", "on the 13th of the month, and every Friday at 00:00 in Paris"),
    ("*/15 9-17 * * 1-5", "every 15 minutes from 09:00 to 17:59, every weekday in Paris"),
    ("15 */6 * * *", "every 6 hours from 00:15 on in Paris"),
]
_ODD = ["*/7 * * * *", "0 22-2 * * *", "0 0 */2 * 0-6", "0 */5 * * *", "* 3,5 * * *", "nonsense", ""]
_SEVERAL = {
    "type": "any",
    "of": [{"type": "interval", "every": "1h"}, {"type": "cron", "expression": "30 2 * * *", "timezone": "UTC"}],
    "calendars": {"only": ["work"], "except": ["holidays-de", "holidays-fr"]},
}
_TRIGGERS: list[tuple[Any, str]] = [
    ({"type": "cron", "expression": "*/7 * * * *", "timezone": "UTC"}, "cron */7 * * * * in UTC"),
    (
        {"type": "interval", "every": "1m30s", "jitter": "10s", "max_fires": 3},
        "every 1m30s, up to 10s later, at most 3 fires",
    ),
    (
        _SEVERAL,
        "every hour or every day at 02:30 in UTC, only on days of work, not on days of holidays-de and holidays-fr",
    ),
    ({"type": "times", "at": ["2001-01-01T00:00:00Z", "2002-01-01T00:00:00Z"]}, "2 times, all past"),
]


def test_triggers_are_said_in_words_or_if_too_odd_as_they_are_written() -> None:
    expressions = [*_CRON, *((expression, None) for expression in _ODD)]
    calls = [("parts/trigger.js", "cronWords", (expression, "Europe/Paris")) for expression, _ in expressions]
    words = _called([*calls, *(("parts/trigger.js", "triggerWords", (trigger,)) for trigger, _ in _TRIGGERS)])
    assert words == [expected for _, expected in [*expressions, *_TRIGGERS]]


def test_an_edit_goes_on_top_of_what_others_changed_meanwhile_and_is_sent_as_a_patch() -> None:
    cron = {"type": "cron", "expression": "1 * * * *", "jitter": "0s"}
    base = {"trigger": cron, "labels": {"a": "1"}, "overlap": "allow"}
    mine = {**base, "trigger": {**cron, "expression": "2 * * * *"}, "labels": {}}
    theirs = {**base, "overlap": "skip", "labels": {"a": "1", "b": "2"}}
    other_type = {**base, "trigger": {"type": "interval", "every": "5s", "jitter": "0s"}, "labels": {"b": "2"}}
    difference = "parts/difference.js"
    merged, patch = _called([(difference, "merged", (base, mine, theirs)), (difference, "patchOf", (base, other_type))])
    assert merged == {"trigger": {**cron, "expression": "2 * * * *"}, "labels": {"b": "2"}, "overlap": "skip"}
    assert patch == {"trigger": other_type["trigger"], "labels": {"a": None, "b": "2"}}
