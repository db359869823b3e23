"""What the crash matrix and the soak say and take, without running them."""

import argparse
from collections import Counter
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from tests.crash import matrix
from tests.crash.matrix import Figures, NoSuchPoint, chosen, for_server
from tests.crash.points import POINTS
from tests.crash.runs import Run
from tests.crash.soak_people import met

MET = ["activation handled session #1", "activity marked pay #1", "body began a #1", "step began risky-g #1"]


def options(**given: object) -> argparse.Namespace:
    """The command's options."""
    return argparse.Namespace(**{"only": "", "every": 1, "kill": "both", "server_every": 1, **given})


def test_a_part_of_a_name_takes_points():
    """`--only marked` kills there, and nowhere else."""
    assert chosen(MET, options(only="marked")) == ["activity marked pay #1"]
    assert for_server(MET, options(kill="both")) == MET[:2]
    assert for_server(MET, options(kill="worker")) == []


def test_a_name_that_there_is_not_is_an_error():
    """Nothing killed is no success: the kinds that there are get named."""
    with pytest.raises(NoSuchPoint, match=r"'nosuchpoint'.*activity marked.*body began"):
        chosen(MET, options(only="nosuchpoint"))


def test_a_point_that_is_nothing_to_the_server_is_an_error_for_it():
    """Killing the server inside a tool's body is the same as before it."""
    with pytest.raises(NoSuchPoint, match="activity marked"):
        chosen(MET, options(only="body", kill="server"))


def test_the_help_has_each_kind_of_point():
    """What `--only` takes is listed."""
    assert all(" ".join(point.split(" ")[:2]) in POINTS for point in MET)


def test_the_result_says_why_people_were_asked_and_what_was_not_met():
    """A call that was cut is no fault; a point that no run met is named."""
    figures = Figures("worker killed", [])
    figures.take(killed := Run("activity marked pay #1", killed=True))
    killed.report.unknown += ["q"]
    figures.take(Run("body began a #1"))
    text = str(figures)
    assert "points 1 (1 not met), runs 2;" in text
    assert "calls cut before they could report: 1; a person was asked about each, as it should be" in text
    assert "not met in 5 runs: body began a #1" in text


@pytest.mark.parametrize(
    ("met", "missed", "gaps"),
    [
        (["body began a #1"], ["body began b #1"], []),
        ([f"body began {number}" for number in range(57)], ["body began a #1", "body began b #1"], []),
        ([f"body began {number}" for number in range(8)], ["body began a #1", "body began b #1"],
         ["2 of 10 points were not met; 5% may be"]),
        (["body began a #1"], ["activity marked pay #1"], ["nothing was killed at any 'activity marked'"]),
        (["activation sent session #1"], ["activation sent cycle-1 #1"],
         ["nothing was killed at any 'activation sent cycle'"]),
    ],
)  # fmt: skip
def test_too_little_killed_is_a_fault(met, missed, gaps):
    """A point may be missed by chance; a kind of which none was met, or many points, has not been tried."""
    figures = Figures("worker killed", [])
    for point in met:
        figures.take(Run(point))
        figures.take(Run(point, killed=True))
    for point in missed:
        figures.take(Run(point))
    assert figures.gaps == gaps
    assert all(gap in str(figures) for gap in gaps)


async def test_the_command_fails_if_too_little_was_killed(monkeypatch):
    """`make crash` does not end well because nothing went wrong where nothing was done."""

    async def clean(address):
        return Run(None, met=list(MET))

    async def never_there(address, point):
        return Run(point)

    monkeypatch.setattr(matrix, "DevServer", lambda **_: nullcontext(SimpleNamespace(address="")))
    monkeypatch.setattr(matrix, "clean", clean)
    monkeypatch.setattr(matrix, "worker_run", never_there)
    assert await matrix.run(options(kill="worker", lanes=1)) > 0


def test_a_soak_tells_in_words_what_operators_met():
    """What belongs to the plan is told as such; what nobody thought of keeps its own name."""
    counts = Counter({"answers sent": 9, "refused: closed": 2, "refused: already_answered": 1})
    counts["operator met SessionEndedError"], counts["operator met ServerError"] = 4, 1
    assert met(counts) == [
        "9 answers sent, a third of them by signal, which nobody acknowledges",
        "4 times a session had ended before an operator's answer came",
        "3 answers came too late: another operator had been quicker",
        "1 times: operator met ServerError",
    ]
