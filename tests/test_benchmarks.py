"""The benchmarks count right; what they measure is not tested."""

from benchmarks.questions import Sample, medians
from benchmarks.work import next_call, prompt


def test_a_ratio_is_to_the_floors_median_at_the_same_size():
    """One slow round changes neither the median nor the ratio."""
    samples = [Sample("ours", 10, {"ms": value}) for value in (30.0, 900.0, 20.0)]
    samples += [Sample("floor", 10, {"ms": value}) for value in (10.0, 10.0, 400.0)]
    samples += [Sample("floor", 50, {"ms": 5.0})]
    ours, floor, _ = medians(samples)
    assert (ours.figures, ours.ratios) == ({"ms": 30.0}, {"ms": 3.0})
    assert (ours.lowest, ours.highest) == ({"ms": 20.0}, {"ms": 900.0})
    assert floor.ratios == {"ms": 1.0}


def test_all_contenders_do_the_same_work():
    """So many calls of one tool, then the one that is asked about, if any, then the end."""
    said = prompt(2, asks=True)
    assert [next_call(said, done) for done in range(4)] == ["count", "count", "guarded", None]
    assert next_call(prompt(1), 1) is None
