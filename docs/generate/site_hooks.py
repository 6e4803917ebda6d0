"""What the site has beyond `docs/`: the pages of the repository's root, and links to them. MkDocs calls it.

``ARCHITECTURE.md``, ``CONTRIBUTING.md`` and others stand where people and forges look for them. The site shows
them below ``project/``; a link to one of them, or from one of them into ``docs/``, is the same link in both places.
"""

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[2]
SHOWN_AS = {
    "CONTRIBUTING.md": "project/contributing.md",
    "ARCHITECTURE.md": "project/architecture.md",
    "CHANGELOG.md": "project/changelog.md",
    "SECURITY.md": "project/security.md",
    "README.md": "index.md",
}
_STANDS_AT = {shown: name for name, shown in SHOWN_AS.items() if name != "README.md"}
_COPIED = {"reference/openapi.json": "hascheduler/api/openapi.json"}
_SHIM, _SHIM_ELSEWHERE = "assets/iframe-worker.js", "https://unpkg.com/iframe-worker/shim"
_LINK = re.compile(r"(?P<before>\]\()(?P<target>[^)#\s:]+)(?P<after>(#[^)\s]*)?\))")


def on_files(files: Any, config: Any) -> Any:
    for shown, name in (_STANDS_AT | _COPIED).items():
        files.append(File.generated(config, shown, abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    shown = page.file.src_uri
    return _LINK.sub(lambda link: link["before"] + relinked(shown, link["target"]) + link["after"], markdown)


def relinked(shown: str, target: str) -> str:
    """Return the link on the page ``shown`` of the site that leads to where ``target`` leads in the repository."""
    stands_at = _STANDS_AT.get(shown, f"docs/{shown}")
    meant = posixpath.normpath(posixpath.join(posixpath.dirname(stands_at), target))
    if meant in SHOWN_AS:
        page = SHOWN_AS[meant]
    elif meant.startswith("docs/"):
        page = meant.removeprefix("docs/")
    else:
        return target  # a link that the site cannot follow: its check says so
    return posixpath.relpath(page, posixpath.dirname(shown) or ".")


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Load the theme's one foreign script from the site itself."""
    folder = posixpath.dirname(page.file.dest_uri) or "."
    return output.replace(_SHIM_ELSEWHERE, posixpath.relpath(_SHIM, folder))


def on_post_template(output_content: str, template_name: str, **_: Any) -> str:
    return output_content.replace(_SHIM_ELSEWHERE, f"/{_SHIM}") if template_name == "404.html" else output_content
