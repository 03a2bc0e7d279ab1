"""The address at which the files of a commit can be read on the web, from the repository's remote."""

import re
from urllib.parse import quote, urlsplit

SCP = re.compile(r"(?:[^@/\s]+@)?(?P<host>[A-Za-z0-9.-]+):(?!/)(?P<path>[^\s]+)")
HOST = re.compile(r"[A-Za-z0-9.-]+(?::[0-9]+)?")


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
