"""Garbage collection that is put off."""

import gc

from gates import garbage_collection


def test_it_is_off_in_the_block_and_what_it_made_is_not_searched_right_after_it() -> None:
    with garbage_collection.put_off():
        with garbage_collection.put_off():
            pass
        assert not gc.isenabled()
        kept = [[number] for number in range(50_000)]
    assert gc.isenabled()
    assert len(gc.get_objects(generation=0)) < len(kept) / 10
