"""Every ending of every family."""

from benchmarks.endings import (
    crashes,
    empty,
    hangs,
    narrowed,
    patched,
    rigged,
    sound,
    sound_projects,
    told,
    with_plugins,
)
from benchmarks.endings.ending import Ending

FAMILIES: dict[str, tuple[Ending, ...]] = {
    "Cut short": crashes.ENDINGS,
    "Never ending": hangs.ENDINGS,
    "Narrowed by settings": narrowed.ENDINGS,
    "Rigged": (*rigged.ENDINGS, *patched.ENDINGS),
    "Failing, or nothing to see": empty.ENDINGS,
    "Under plugins": with_plugins.ENDINGS,
    "Suites of strangers": told.read("other_suites.txt"),
    "Training code": told.read("training.txt"),
    "Numbers and commands": told.read("numbers.txt"),
    "Sound": (*sound.ENDINGS, *sound_projects.ENDINGS),
}
CORPUS = tuple(ending for family in FAMILIES.values() for ending in family)
