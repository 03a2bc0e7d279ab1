"""Who vouches for a bundle: a signature by an SSH key, made and checked by `ssh-keygen`."""

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from gates.bundles.encoding import BadBundle
from gates.errors import UsageError
from gates.terminal import visible

NAMESPACE = "gates-bundle"
TIMEOUT_S = 120


def sign(data: bytes, key: Path) -> str:
    """Return the signature of a key over some bytes; raise `UsageError` where it cannot be made."""
    done = _keygen(("-Y", "sign", "-n", NAMESPACE, "-f", str(key)), data)
    if isinstance(done, str):
        raise UsageError(f"--sign-key {key}: {done}")
    return done.decode("ascii")


def signer_of(data: bytes, signature: str | None, signers: Sequence[str]) -> str:
    """Return which of the allowed signers vouches for some bytes; raise `BadBundle` where none does."""
    if signature is None:
        raise BadBundle("it is not signed, and evidence_signers of [tool.gates] asks for a signature")
    with tempfile.TemporaryDirectory(prefix="gates-signature-") as folder:
        allowed, told = Path(folder, "allowed"), Path(folder, "signature")
        allowed.write_text("".join(f"{line}\n" for line in signers), encoding="utf-8")
        told.write_text(signature, encoding="utf-8")
        common = ("-f", str(allowed), "-s", str(told))
        found = _keygen(("-Y", "find-principals", *common), b"")
        if isinstance(found, str):
            raise BadBundle(f"its signature is none of evidence_signers of [tool.gates]: {found}")
        name = (found.decode("utf-8", "replace").splitlines() or [""])[0]
        checked = _keygen(("-Y", "verify", "-n", NAMESPACE, "-I", name, *common), data)
        if isinstance(checked, str):
            raise BadBundle(f"its signature does not fit what it says: {checked}")
    return visible(name)


def _keygen(words: tuple[str, ...], data: bytes) -> bytes | str:
    """Return what ssh-keygen prints, or in words why it failed."""
    try:
        done = subprocess.run(["ssh-keygen", *words], input=data, capture_output=True, check=False, timeout=TIMEOUT_S)  # noqa: S607  # the one that the user has
    except FileNotFoundError:
        return "there is no ssh-keygen here"
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"ssh-keygen cannot be run: {type(error).__name__}"
    if done.returncode == 0:
        return done.stdout
    words_of = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["ssh-keygen says no"]
    return visible(words_of[-1])[:200]
