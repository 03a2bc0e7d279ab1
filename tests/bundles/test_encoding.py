"""A bundle as bytes: what was written is read back, and nothing else ever is."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from building import samples
from bundling import a_bundle, a_bundled_run, put

from gates.bundles import BadBundle, _digest, decode, encode, read, signed_part

DATA = encode(a_bundle())


def again(value: object, **how: Any) -> bytes:
    """What a careful forger writes: the same form, with a digest that fits, unless said otherwise."""
    return (json.dumps(value, **{"indent": 1, "sort_keys": True, **how}) + "\n").encode()


def forged(change: Callable[[Any], object]) -> bytes:
    """A bundle with its contents changed and its digest made to fit."""
    value = json.loads(DATA)
    change(value)
    value["digest"] = _digest({key: value[key] for key in value if key != "digest"})
    return again(value)


def test_what_was_written_is_read_back() -> None:
    bundle = decode(DATA)
    assert encode(bundle) == DATA
    assert bundle.model_copy(update={"digest": "0" * 64}) == a_bundle()


def test_one_byte_altered_less_or_more_anywhere_is_refused() -> None:
    for at, byte in enumerate(DATA):
        flipped = DATA[:at] + bytes([byte ^ 1 << at % 8]) + DATA[at + 1 :]
        more_or_less = (DATA[:at] + b" " + DATA[at:], DATA[:at] + DATA[at + 1 :], DATA[:at])
        for altered in (flipped, *(more_or_less if at % 7 == 0 else ())):
            with pytest.raises(BadBundle):
                decode(altered)


def test_case_of_a_letter_of_the_digest_counts() -> None:
    digest = json.loads(DATA)["digest"].encode()
    assert digest.upper() != digest
    with pytest.raises(BadBundle):
        decode(DATA.replace(digest, digest.upper()))


VALUE = json.loads(DATA)
OTHERWISE = {
    "nothing": b"",
    "twice": DATA + DATA,
    "more after the end": DATA + b"\x00",
    "no line end": DATA[:-1],
    "byte order mark": b"\xef\xbb\xbf" + DATA,
    "another encoding": DATA.decode().encode("utf-16"),
    "other order": again(dict(reversed(VALUE.items())), sort_keys=False),
    "other spacing": again(VALUE, indent=2),
    "a key twice": DATA.replace(b' "signature": null', b' "signature": null,\n "signature": null'),
    "a number in other words": DATA.replace(b"0.002010001,", b"0.0020100010,", 1),
    "not a number": DATA.replace(b"0.002010001,", b"NaN,", 1),
    "a number without end": DATA.replace(b"0.002010001,", b"1e999,", 1),
    "a list": b"[]\n",
    "an empty object": b"{}\n",
    "nested without end": b"[" * 100_000,
    "a number of many digits": b"9" * 5_000 + b"\n",
    "another form": DATA.replace(b"gates.bundle/1", b"gates.bundle/2"),
}


@pytest.mark.parametrize("data", OTHERWISE.values(), ids=OTHERWISE.keys())
def test_whatever_else_stands_in_a_file_is_refused_in_one_line(data: bytes) -> None:
    with pytest.raises(BadBundle) as refused:
        decode(data)
    assert str(refused.value).startswith("it ")
    assert "\n" not in str(refused.value)


def test_line_endings_that_git_changed_are_named() -> None:
    with pytest.raises(BadBundle, match=r"line endings were changed .* .gitattributes"):
        decode(DATA.replace(b"\n", b"\r\n"))


def arms(value: Any) -> Any:
    return value["runs"][0]["run"]["samples"]["metrics"]["step_time_s"]["arms"]


NONSENSE: dict[str, Callable[[Any], object]] = {
    "an unknown key": lambda value: value.update(more=1),
    "no runs": lambda value: value.update(runs=[]),
    "a run without samples": lambda value: value["runs"][0]["run"].update(samples=None),
    "a run that failed": lambda value: value["runs"][0]["run"].update(problem="no"),
    "a run of no files": lambda value: value["runs"][0].update(files=[]),
    "a file above the project": lambda value: value["runs"][0]["files"][0].update(path="../secret"),
    "a file outside of it": lambda value: value["runs"][0]["files"][0].update(path="/etc/passwd"),
    "one run twice": lambda value: value["runs"].append(value["runs"][0]),
    "CPU samples of a CUDA run": lambda value: value["runs"][0]["run"]["samples"]["device"].update(type="cpu"),
    "an arm without samples": lambda value: arms(value).update(old=[]),
    "a sample of zero": lambda value: arms(value)["old"].__setitem__(0, 0.0),
    "a negative sample": lambda value: arms(value)["old"].__setitem__(0, -1.0),
    "one sample too few": lambda value: arms(value)["old"].pop(),
    "text as a sample": lambda value: arms(value)["old"].__setitem__(0, "1.0"),
    "half a character": lambda value: value["origin"].update(by="\ud800"),
    "samples of another form": lambda value: value["runs"][0]["run"]["samples"].update(schema="gates.samples/9"),
}


@pytest.mark.parametrize("change", NONSENSE.values(), ids=NONSENSE.keys())
def test_nonsense_with_a_digest_that_fits_is_refused(change: Callable[[Any], object]) -> None:
    with pytest.raises(BadBundle, match="it is no bundle of this version: "):
        decode(forged(change))
    assert decode(forged(lambda _: None)) == decode(DATA)


def test_signature_speaks_for_all_but_itself_and_the_digest_covers_it() -> None:
    bundle = a_bundle()
    signed = bundle.model_copy(update={"signature": "mine"})
    assert signed_part(signed) == signed_part(bundle) == signed_part(decode(encode(signed)))
    assert signed_part(a_bundle(a_bundled_run(samples(device="cuda", capabilities=["fp16"])))) != signed_part(bundle)
    with pytest.raises(BadBundle, match="its digest is not that of its contents"):
        decode(encode(signed).replace(b'"mine"', b'"tine"'))


def test_only_a_plain_file_is_read(tmp_path: Path) -> None:
    path = put(a_bundle(), tmp_path / "a.json")
    assert read(path) == decode(DATA)
    (tmp_path / "link.json").symlink_to(path)
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "folder.json").mkdir()
    for name, why in {
        "link": "it is no plain file", "pipe": "it is no plain file", "folder": "it is no plain file",
        "gone": "No such file",
    }.items():  # fmt: skip
        with pytest.raises(BadBundle, match=why):
            read(tmp_path / f"{name}.json")


def test_file_larger_than_any_bundle_is_not_read_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gates.bundles.MAX_BYTES", 100)
    with pytest.raises(BadBundle, match="more than 100 bytes"):
        read(put(a_bundle(), tmp_path / "a.json"))


def test_parts_of_two_good_bundles_make_no_third() -> None:
    other = json.loads(encode(a_bundle(a_bundled_run(samples(device="cuda", capabilities=["fp16"])))))
    for part in ("runs", "digest"):
        with pytest.raises(BadBundle, match="its digest is not that of its contents"):
            decode(again({**json.loads(DATA), part: other[part]}))
