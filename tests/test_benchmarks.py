"""The benchmarks count right, and run; what they measure is not tested."""

import json
import sys

import pytest
from benchmarks import __main__ as command
from benchmarks.questions import Sample, medians
from benchmarks.work import next_call, prompt

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="the benchmarks read CPU time and memory as Linux does")


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


@on_linux
def test_without_the_peer_the_others_are_measured(tmp_path, monkeypatch, capsys):
    """`make install` does not bring it: it is named with what installs it, and the figures are written."""
    figures = tmp_path / "figures.json"
    monkeypatch.setattr(command, "peer_is_installed", lambda: False)
    monkeypatch.setattr(sys, "argv", ["benchmarks", "cycles", "--quick", "--sizes", "2", "--json", str(figures)])
    command.main()
    assert capsys.readouterr().err.startswith(
        "the peer is left out, as it is not installed: pip install -e '.[bench]'\n"
    )
    cycles = json.loads(figures.read_text())["questions"]["cycles"]
    assert [one["way"] for one in cycles["medians"]] == ["countersign", "handover_after=0", "floor"]
    assert all(one["figures"]["ms"] > 0 and one["samples"] == 1 for one in cycles["medians"])


@on_linux
def test_what_was_found_is_kept_when_a_later_question_fails(tmp_path, monkeypatch):
    """Twenty minutes of figures are not lost to the last question."""
    figures = tmp_path / "figures.json"

    async def ask(question, *_):
        if question.name == "approvals":
            raise RuntimeError("a worker ended")
        return [Sample("floor", 2, dict.fromkeys((column.key for column in question.columns), 1.0))]

    monkeypatch.setattr(command, "ask", ask)
    monkeypatch.setattr(sys, "argv", ["benchmarks", "cycles", "approvals", "--json", str(figures)])
    with pytest.raises(RuntimeError, match="a worker ended"):
        command.main()
    assert list(json.loads(figures.read_text())["questions"]) == ["cycles"]
