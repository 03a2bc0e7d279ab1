"""Garbage collection that is put off."""

import gc

from gates import garbage_collection


def test_what_came_to_life_in_the_block_is_not_searched_right_after_it() -> None:
    with garbage_collection.put_off():
        assert not gc.isenabled()
        kept = [[number] for number in range(50_000)]
    assert gc.isenabled()
    assert len(gc.get_objects(generation=0)) < len(kept) / 10


def test_garbage_of_the_block_is_found_in_the_end() -> None:
    class Circle:
        alive = 0

        def __init__(self) -> None:
            self.own = self
            Circle.alive += 1

        def __del__(self) -> None:
            Circle.alive -= 1

    with garbage_collection.put_off():
        Circle()
    gc.collect()
    assert Circle.alive == 0


def test_it_stays_off_where_it_was_off() -> None:
    with garbage_collection.put_off():
        with garbage_collection.put_off():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
