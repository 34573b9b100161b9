import random

import pytest

from spade_train.seeds import environment_seeds
from spade_train.tiny.data import random_design, shuffled_meaning
from spade_train.tiny.families import BY_NAME, hint, source
from spade_train.tiny.play import options, scripted_plays

SEEDS = environment_seeds(24, "test-play")


@pytest.mark.parametrize("name", ["shift", "pick", "wheel", "desk", "gate"])
def test_the_hinted_player_wins_and_the_other_does_not(name, pool):
    rng = random.Random(name)
    design = shuffled_meaning(random_design(rng, BY_NAME[name]), rng)
    with pool.open(source(design), instances=len(SEEDS)) as session:
        hinted = scripted_plays(session, SEEDS, rng, hint=hint(design, rng), right=1.0)
        free = scripted_plays(session, SEEDS, rng)
    assert all(play.solved and play.hinted for play in hinted)
    assert sum(play.solved for play in free) < 18
    for play in (*hinted, *free):
        assert play.messages[-1]["role"] == "assistant"
        assert ("\n\nHint: " in play.messages[0]["content"]) == play.hinted
        assert bool(play.tools) == (name in ("desk", "gate"))


def test_free_play_answers_with_options_on_show(pool):
    rng = random.Random(1)
    design = random_design(rng, BY_NAME["compass"])
    with pool.open(source(design), instances=len(SEEDS)) as session:
        plays = scripted_plays(session, SEEDS, rng)
    for play in plays:
        for said, answer in zip(play.messages[0::2], play.messages[1::2], strict=True):
            assert answer["content"].strip() in options(said["content"])
