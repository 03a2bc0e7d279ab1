"""The journal of a run: one signed line of JSON for each thing told, written at once."""

import os
from hmac import new as hashed
from json import dumps
from os import O_APPEND, O_CREAT, O_WRONLY, close, getpid, write
from os import open as opened


class Teller:
    """Tells of what was seen; needs nothing that the project may have replaced in a module, or closed."""

    def __init__(self, path: str, secret: str) -> None:
        self._owner = getpid()
        self._path = os.path.abspath(path)  # noqa: PTH100  # the project may leave the folder
        self._secret = secret.encode()

    def __call__(self, word: str, **facts: object) -> None:
        """Write a line; a child that the project forked, and that came back here, ends instead."""
        if getpid() != self._owner:
            os._exit(1)
        text = dumps({"word": word, **facts}).encode()
        file = opened(self._path, O_WRONLY | O_CREAT | O_APPEND, 0o600)
        write(file, hashed(self._secret, text, "sha256").hexdigest().encode() + b" " + text + b"\n")
        close(file)

    def forked(self) -> None:
        """Go on telling in a fork of ours."""
        self._owner = getpid()
