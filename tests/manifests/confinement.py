"""A process as a pod would have it: a user that owns nothing, no home, nothing that can be written.

Where the tests do not run as root the user stays, and the root is as writable as it is: `is_root` says so.
"""

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

NOBODY = "65534"

# All of it in a mount namespace that ends with the process. A Python in a folder that only root may enter, such as
# root's home, is shown to others at the same place. Then each mount is made read-only by itself, as a bind mount keeps
# those below it as they are; some can't be changed (the kernel's own), and whether it was enough is seen by trying.
_PREPARE = """
set -eu
python=$1 closed=$2; shift 2
if [ -n "$closed" ]; then
  kept=$(mktemp -d)
  mount --bind "$python" "$kept"
  mount -t tmpfs -o mode=755 none "$closed"
  mkdir -p "$python"
  mount --bind "$kept" "$python"
  umount "$kept"
  rmdir "$kept"
fi
while read -r _ place _; do
  mount -o remount,bind,ro "$(printf '%b' "$place")" 2>/dev/null || :
done < /proc/self/mounts
exec "$@"
"""


def is_root() -> bool:
    return os.geteuid() == 0 and all(map(shutil.which, ("unshare", "setpriv", "mount")))


def confined(words: Sequence[str]) -> list[str]:
    """The command line that runs ``words`` so."""
    if not is_root():
        return list(words)
    python = Path(sys.base_prefix).resolve()
    closed = [folder for folder in [*reversed(python.parents), python] if not folder.stat().st_mode & 0o001]
    prepare = ["bash", "-c", _PREPARE, "-", str(python), str(closed[0]) if closed else ""]
    user = ["setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "--no-new-privs", "--bounding-set=-all"]
    return ["unshare", "--mount", "--propagation", "private", *prepare, *user, *words]
