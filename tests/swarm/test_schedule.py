"""The order of a group: first reserved, first run (BEHAVIOURS 374)."""

from toolcell.swarm.schedule import Schedule


class Places:
    def __init__(self, limit):
        self.schedule = Schedule(limit)
        self.started = []
        self.by_name = {}

    def reserve(self, *names):
        for name in names:
            start = lambda name=name: self.started.append(name)
            self.by_name[name] = self.schedule.reserve(start)

    def ready(self, *names):
        for name in names:
            self.schedule.ready(self.by_name[name])

    def leave(self, name):
        self.schedule.leave(self.by_name[name])


def test_a_later_place_waits_for_an_earlier_one_that_is_not_ready():
    """BEHAVIOURS 374: first in by reservation, even if a later one is ready first."""
    places = Places(1)
    places.reserve("a", "b")
    places.ready("b")
    assert places.started == []
    places.ready("a")
    assert places.started == ["a"]
    places.leave("a")
    assert places.started == ["a", "b"]


def test_places_that_left_the_queue_are_skipped():
    """BEHAVIOURS 374."""
    places = Places(1)
    places.reserve("a", "b", "c")
    places.ready("a", "b", "c")
    places.leave("b")
    places.leave("a")
    assert places.started == ["a", "c"]
    assert places.schedule.waiting == 0


def test_a_place_that_left_before_it_was_ready_holds_nobody_up():
    places = Places(1)
    places.reserve("a", "b")
    places.ready("b")
    places.leave("a")
    assert places.started == ["b"]


def test_a_lower_limit_refills_only_below_it_and_a_higher_one_at_once():
    """BEHAVIOURS 374."""
    places = Places(3)
    places.reserve(*"abcdef")
    places.ready(*"abcdef")
    places.schedule.set_limit(1)
    places.leave("a")
    places.leave("b")
    assert places.started == ["a", "b", "c"]
    places.leave("c")
    assert places.started == ["a", "b", "c", "d"]
    places.schedule.set_limit(3)
    assert places.started == ["a", "b", "c", "d", "e", "f"]


def test_a_late_clean_up_does_not_touch_another_place():
    """BEHAVIOURS 374: leaving twice frees one slot."""
    places = Places(1)
    places.reserve("a", "b", "c")
    places.ready("a", "b", "c")
    places.leave("a")
    places.leave("a")
    assert places.started == ["a", "b"]
    assert places.schedule.running == 1


def test_schedules_of_two_groups_do_not_know_each_other():
    """BEHAVIOURS 374."""
    one, two = Places(1), Places(1)
    for places in (one, two):
        places.reserve("a")
        places.ready("a")
    assert (one.started, two.started) == (["a"], ["a"])
