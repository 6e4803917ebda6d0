"""The page /docs takes everything from the package, and its policy allows nothing else."""

import re
from hashlib import sha256
from importlib.resources import files

import httpx
import pytest

from hascheduler.api.ui.pages import ASSETS

FOLDER = files("hascheduler.api") / "swagger_ui"


async def test_the_page_takes_nothing_from_elsewhere(client: httpx.AsyncClient) -> None:
    answer = await client.get("/docs")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    loaded = re.findall(r'(?:src|href)="([^"]*)"', answer.text)
    assert sorted(loaded) == sorted(["data:,", *(f"docs/{name}" for name in ASSETS)])
    assert "://" not in answer.text
    for name, media_type in ASSETS.items():
        asset = await client.get(f"/docs/{name}")
        assert asset.status_code == 200
        assert asset.headers["content-type"] == f"{media_type}; charset=utf-8"
        assert asset.headers["x-content-type-options"] == "nosniff"


async def test_no_script_or_style_stands_in_the_page(client: httpx.AsyncClient) -> None:
    page = (await client.get("/docs")).text
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\bstyle=|\bon\w+=|javascript:", page)


async def test_the_policy_allows_this_replica_alone(client: httpx.AsyncClient) -> None:
    for path in ("/docs", *(f"/docs/{name}" for name in ASSETS)):
        headers = (await client.get(path)).headers
        policy = dict(each.strip().split(" ", 1) for each in headers["content-security-policy"].split(";"))
        assert policy["default-src"] == "'none'"
        assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
        assert policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
        assert "unsafe" not in headers["content-security-policy"]
        assert "://" not in headers["content-security-policy"]
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "no-referrer"


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
