"""A benchmark compares its goals itself, and its status says whether they are met."""

from __future__ import annotations

import json

import pytest

from bench.report import Goal, report

GOALS = (
    Goal("fast", "p50_ms", "<=", 350),
    Goal("right, on the unseen", "unseen.right", ">=", 0.9),
    Goal("the same ids", "different", "==", 0),
)
GOOD = {"p50_ms": 350.0, "unseen": {"right": 0.95}, "different": 0}


@pytest.mark.parametrize("as_json", [True, False])
def test_all_goals_met_is_status_0(as_json: bool, capsys: pytest.CaptureFixture[str]) -> None:
    assert report("Test", GOOD, GOALS, as_json=as_json) == 0
    said = capsys.readouterr()
    assert said.err == ""
    if as_json:
        goals = json.loads(said.out)["goals"]
        assert [goal["verdict"] for goal in goals] == ["met"] * 3
        assert [goal["measured"] for goal in goals] == [350.0, 0.95, 0]
    else:
        assert "missed" not in said.out


@pytest.mark.parametrize(
    ("worse", "short"),
    [
        ({"p50_ms": 350.1}, "fast"),
        ({"unseen": {"right": 0.89}}, "right, on the unseen"),
        ({"different": 1}, "the same ids"),
        ({"p50_ms": float("nan")}, "fast"),
    ],
)
@pytest.mark.parametrize("as_json", [True, False])
def test_a_goal_that_falls_short_is_listed_with_its_figure_and_is_status_1(
    worse: dict[str, object], short: str, as_json: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report("Test", {**GOOD, **worse}, GOALS, as_json=as_json) == 1
    said = capsys.readouterr()
    assert said.err.startswith(f"goals missed:\n  {short} (")
    assert len(said.err.splitlines()) == 2
    if as_json:
        verdicts = {goal["name"]: goal["verdict"] for goal in json.loads(said.out)["goals"]}
        assert [name for name, verdict in verdicts.items() if verdict == "missed"] == [short]


@pytest.mark.parametrize("value", [{}, {"right": None}, None])
def test_a_figure_that_was_lost_falls_short_unless_the_run_says_why(
    value: object, capsys: pytest.CaptureFixture[str]
) -> None:
    figures = {**GOOD, "unseen": value}
    assert report("Test", figures, GOALS, as_json=True) == 1
    assert "goals not measured:\n  right, on the unseen" in capsys.readouterr().err
    assert report("Test", figures, GOALS, as_json=True, left_out=["--quick"]) == 0
    assert "goals not measured (--quick):" in capsys.readouterr().err
