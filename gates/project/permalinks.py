"""The address at which the files of a commit can be read on the web, from the repository's remote."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, urlsplit

SCP = re.compile(r"(?:[^@/\s]+@)?(?P<host>[A-Za-z0-9.-]+):(?!/)(?P<path>[^\s]+)")
HOST = re.compile(r"[A-Za-z0-9.-]+(?::[0-9]+)?")


@dataclass(frozen=True)
class Web:
    """The address that a path of a commit follows; the files of a submodule have one of their own, or none."""

    base: str
    submodules: Mapping[str, str | None] = field(default_factory=dict)

    def address(self, path: str) -> str | None:
        """Return where a file can be read, or `None` where that is not known."""
        around = [folder for folder in self.submodules if f"{path}/".startswith(f"{folder}/")]
        if not around:
            return f"{quote(self.base, safe=':/-._~%')}{quote(path)}"
        folder = max(around, key=len)
        base = self.submodules[folder]
        return None if base is None else f"{quote(base, safe=':/-._~%')}{quote(path[len(folder) + 1 :])}"


def base_of(remote: str, commit: str, prefix: str = "") -> str | None:
    """Return the address for a remote such as `git@host:owner/name.git`; a name and password in it are left out."""
    found = _host_and_path(remote)
    if found is None:
        return None
    host, path = found
    path = path.strip("/").removesuffix(".git")
    if not HOST.fullmatch(host) or path.count("/") < 1:
        return None
    middle = "/-/blob/" if "gitlab" in host else "/src/" if "bitbucket" in host else "/blob/"
    return f"https://{host}/{quote(path)}{middle}{commit}/{quote(prefix)}"


def _host_and_path(remote: str) -> tuple[str, str] | None:
    if "://" in remote:
        try:
            parts = urlsplit(remote)
            port = f":{parts.port}" if parts.port and parts.scheme in {"http", "https"} else ""
        except ValueError:
            return None
        if parts.scheme not in {"http", "https", "ssh", "git"} or not parts.hostname:
            return None
        return parts.hostname + port, parts.path
    scp = SCP.fullmatch(remote)
    return (scp["host"], scp["path"]) if scp else None
