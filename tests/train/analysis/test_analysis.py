import numpy as np
import pytest

from spade_train.analysis import (
    acceptance_funnel,
    bootstrap_interval,
    learnable_band_share,
    levers,
    mean_pairwise_distance,
    vendi_score,
    wilson_interval,
)
from spade_train.analysis.diversity import cosine_similarity


def test_vendi_golden(golden):
    for case in golden["vendi_score"]:
        assert vendi_score(case["similarity"]) == pytest.approx(case["expected"], abs=1e-5)


@pytest.mark.parametrize("shape", [(2, 3), (0, 0), (4,)])
def test_vendi_needs_a_square(shape):
    with pytest.raises(ValueError, match="square matrix"):
        vendi_score(np.zeros(shape))


def test_band_share_golden(golden):
    for case in golden["learnable_band_share"]:
        share = learnable_band_share(
            case["win_rates"], low=case["low"], high=case["high"], quota=case["quota"]
        )
        assert share == pytest.approx(case["expected"])
    assert learnable_band_share([]) is None
    assert learnable_band_share([], quota=4) == 0.0


def test_distances():
    rows = [[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]]
    assert cosine_similarity(rows).tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    assert mean_pairwise_distance(rows) == pytest.approx(1.0)
    assert mean_pairwise_distance([[1.0, 1.0], [2.0, 2.0]]) == pytest.approx(0.0)
    assert mean_pairwise_distance([[1.0]]) is None


def test_wilson():
    low, high = wilson_interval(5, 10)
    assert (low, high) == (pytest.approx(0.2366, abs=1e-4), pytest.approx(0.7634, abs=1e-4))
    assert wilson_interval(0, 0) == (0.0, 1.0)
    assert wilson_interval(10, 10)[1] == pytest.approx(1.0)


def test_bootstrap_covers_the_mean_and_repeats_itself():
    values = [0.0, 1.0] * 50
    low, high = bootstrap_interval(values)
    assert 0.38 < low < 0.5 < high < 0.62
    assert bootstrap_interval(values) == (low, high)
    assert bootstrap_interval([1.0]) is None


def test_funnel_counts_the_first_error():
    accepted = {"verdict": "accepted", "source": "x", "try": 0, "findings": []}
    warned = {
        "verdict": "rejected",
        "source": "x",
        "try": 1,
        "findings": [
            {"code": "SPD602", "severity": "warning"},
            {"code": "SPD401", "severity": "error"},
            {"code": "SPD701", "severity": "error"},
        ],
    }
    empty = {"verdict": "rejected", "source": None, "try": 0, "findings": []}
    desk = {"verdict": "rejected", "source": "x", "try": 1, "findings": []}
    funnel = acceptance_funnel([accepted, warned, warned, empty, desk])
    assert (funnel.tries, funnel.with_code, funnel.accepted) == (5, 4, 1)
    assert funnel.acceptance == 0.2
    assert dict(funnel.by_code) == {"SPD401": 2, "no code": 1, "other kind": 1}
    assert funnel.tries_by_number == {0: (2, 1), 1: (3, 0)}
    assert acceptance_funnel([]).acceptance is None


def test_levers_are_read_without_running():
    source = """
RANGE = 20
lower = 3
class HopEnv(TextEnv):
    skill = "optimization"
    version = 2
    max_turns = 6
    options: int = 4
    DROP = -1.5
    FLAG = True
    computed = 3 + 4
    def reset(self, seed=None):
        self.inner = 9
"""
    assert levers(source) == {"RANGE": 20, "max_turns": 6, "options": 4, "DROP": -1.5}
    assert levers("class (") == {}
