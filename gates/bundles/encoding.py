"""A bundle as bytes: there is one way to write it, and whatever else is found was altered.

The file is JSON in one canonical form. It is read, written again and compared byte for byte, so that there is no room
for what two readers could see differently: other spacing or order, a key twice, something after the end. The digest
then guards the contents.
"""

import hashlib
import json
import math
import os
import stat
from pathlib import Path

from pydantic import JsonValue, ValidationError

from gates.bundles.form import SCHEMA, Bundle
from gates.terminal import visible

MAX_BYTES = 64 * 1024 * 1024
LINE_ENDINGS = "its line endings were changed (git does so where .gitattributes does not say `-text`)"


class BadBundle(Exception):
    """A file that is no bundle, or one that was altered; why, in one line."""


def encode(bundle: Bundle) -> bytes:
    """Return a bundle as the bytes of its file, with its digest made afresh."""
    rest = bundle.model_dump(mode="json", by_alias=True, exclude={"digest"})
    return _canonical({**rest, "digest": _digest(rest)})


def signed_part(bundle: Bundle) -> bytes:
    """Return what a signature speaks for: everything but itself, and the digest that covers it."""
    return _canonical(bundle.model_dump(mode="json", by_alias=True, exclude={"digest", "signature"}))


def decode(data: bytes) -> Bundle:
    """Return the bundle that a file holds; raise `BadBundle` where one byte of it is not as it was written."""
    value = _parsed(data)
    if not isinstance(value, dict) or "digest" not in value or "schema" not in value:
        raise BadBundle("it is no bundle")
    if _canonical(value) != data:
        raise BadBundle(f"it was altered: {_how(value, data)}")
    if value["schema"] != SCHEMA:
        raise BadBundle(f"it has the form {visible(str(value['schema']))!r:.60}, expected {SCHEMA!r}")
    digest = value.pop("digest")
    if digest != _digest(value):
        raise BadBundle("it was altered: its digest is not that of its contents")
    try:
        return Bundle.model_validate_json(data)
    except (ValidationError, ValueError) as error:
        raise BadBundle(_first(error)) from error


def read(path: Path) -> Bundle:
    """Return the bundle of a file; raise `BadBundle` for one that cannot be read."""
    return decode(contents(path))


def contents(path: Path) -> bytes:
    """Return the bytes of a plain file; raise `BadBundle` for a link, a pipe, a folder or what is too large."""
    try:
        number = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(number, "rb") as file:
            if not stat.S_ISREG(os.fstat(number).st_mode):
                raise BadBundle("it is no plain file")
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = "it is a link, expected the file itself" if path.is_symlink() else getattr(error, "strerror", error)
        raise BadBundle(f"it cannot be read: {reason}") from error
    if len(data) > MAX_BYTES:
        raise BadBundle(f"it has more than {MAX_BYTES} bytes")
    return data


def _parsed(data: bytes) -> JsonValue:
    try:
        value: JsonValue = json.loads(data.decode("ascii"), parse_constant=_refuse, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise BadBundle("it was altered or is no bundle: not the JSON that `gates measure` writes") from error
    return value


def _how(value: JsonValue, data: bytes) -> str:
    if _canonical(value) == data.replace(b"\r\n", b"\n"):
        return LINE_ENDINGS
    return "written again it is not the same, byte for byte"


def _refuse(token: str) -> float:
    raise ValueError(f"holds {token}")


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse(text)


def _canonical(value: JsonValue) -> bytes:
    return (json.dumps(value, indent=1, sort_keys=True, allow_nan=False) + "\n").encode("ascii")


def _digest(value: JsonValue) -> str:
    return hashlib.sha256(_canonical(value)).hexdigest()


def _first(error: ValueError) -> str:
    if not isinstance(error, ValidationError):
        return f"it is no bundle of this version: {visible(str(error)):.200}"
    first = error.errors()[0]
    where = ".".join(map(str, first["loc"])) or "the file"
    return visible(f"it is no bundle of this version: {where:.100}: {first['msg']:.200}")
