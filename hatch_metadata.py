"""The readme and the URLs of the package, with the address of the repository that builds it.

Links in README.md are relative, so that they work in any checkout. On PyPI they must be absolute: where the build knows
its repository, as the release workflow does, they point to the files of this version. Elsewhere they stay as they are,
and the package has no URLs.
"""

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\n)*)\]\((?![a-z]+:|#)([^)\s]+)\)")


class RepositoryLinks(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        text = Path(self.root, "README.md").read_text("utf-8")
        server, repository = os.environ.get("GITHUB_SERVER_URL"), os.environ.get("GITHUB_REPOSITORY")
        metadata["urls"] = {}
        if server and repository:
            address, tag = f"{server}/{repository}", f"v{metadata['version']}"
            text = absolute_links(text, address, tag)
            metadata["urls"] = {
                "Documentation": f"{address}/blob/{tag}/docs/index.md",
                "Repository": address,
                "Changelog": f"{address}/blob/{tag}/CHANGELOG.md",
                "Issues": f"{address}/issues",
            }
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def absolute_links(text: str, address: str, tag: str) -> str:
    """Return the Markdown with each relative link and picture as that file of the repository at ``tag``."""
    return _LINK.sub(
        lambda found: f"{found[1]}[{found[2]}]({address}/{'raw' if found[1] else 'blob'}/{tag}/{found[3]})", text
    )
