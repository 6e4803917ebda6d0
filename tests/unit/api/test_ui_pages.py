"""The dashboard and /docs take everything from the package, say so to the browser, and are the same for everybody."""

import gzip
import json
import re
from hashlib import sha256
from importlib.resources import files

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
