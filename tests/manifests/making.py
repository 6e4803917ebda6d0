"""Secrets and certificates as an operator makes them, with the script beside the manifests."""

import os
import subprocess
from pathlib import Path

from tests.manifests.rendering import ROOT


def make_secrets(folder: Path, **variables: str) -> Path:
    """Run ``k8s/make-secrets``, and return the folder."""
    done = subprocess.run(
        [ROOT / "k8s/make-secrets", folder],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder
