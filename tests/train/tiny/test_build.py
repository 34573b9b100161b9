import pytest

from spade_runtime.errors import UsageError
from spade_train.corpus import Corpus
from spade_train.tiny.build import build, scripted_chats
from spade_train.tiny.data import inkling
from spade_train.tiny.lexicon import BY_WORD, NEW_THEMES, OPS, THEMES, rule_text
from spade_train.tiny.model import Shape
from spade_train.tiny.warmstart import Recipe

SMALL = Shape(layers=1, width=32, heads=1, inner=64)
RECIPE = Recipe(
    steps=12, easy_steps=4, drill_steps=8, drills=8, designs=3, hints=3, plays=6, seed=5
)


def _build(out, pool, losses=None):
    def progress(stage, done, total, note):
        if losses is not None and stage == "training":
            losses.append(float(note.split("play ")[1]))

    corpus = Corpus.open(["builtin"], max_words=200)
    return build(out, pool, corpus, RECIPE, shape=SMALL, environments=8, progress=progress)


def test_a_build_is_seeded_and_loads(tmp_path, pool):
    import torch
    from transformers import AutoModelForCausalLM

    losses: list[float] = []
    first = _build(tmp_path / "a", pool, losses)
    second = _build(tmp_path / "b", pool)
    assert first.parameters == second.parameters
    one, two = (AutoModelForCausalLM.from_pretrained(x.folder) for x in (first, second))
    assert one.config.model_type == "qwen3"
    for name, weight in one.state_dict().items():
        assert torch.equal(weight, two.state_dict()[name]), name
    assert losses[-1] < losses[0]
    assert (first.folder / "recipe.json").is_file()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_a_folder_with_something_in_it_is_left_alone(tmp_path, pool):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(UsageError, match="not empty"):
        _build(tmp_path, pool)


@pytest.fixture(scope="module")
def script(pool):
    return scripted_chats(pool, 96, 3, lambda *_: None)


def _opening(chat):
    return next(m["content"] for m in chat.messages if m["role"] == "user")


def _words(chat):
    return set(_opening(chat).replace(".", " ").split())


def test_play_is_told_the_rule_by_a_hint_or_in_the_place_of_the_word(script):
    rules = [rule_text(op) for op in OPS]
    for chats in (script.easy, script.drills):
        forms = {"hint": 0, "rule": 0, "word": 0}
        for chat in (chat for group in chats for chat in group):
            opening = _opening(chat)
            named = not BY_WORD.keys().isdisjoint(_words(chat))
            hinted, ruled = "Hint:" in opening, any(rule in opening for rule in rules)
            forms["hint" if hinted else "rule" if ruled else "word"] += 1
            assert hinted or ruled or (named and chats is script.drills)
        assert forms["hint"] and forms["rule"]
        assert bool(forms["word"]) == (chats is script.drills)


def test_only_play_that_is_told_the_rule_is_set_where_the_heldout_environments_are(script):
    untold = told = 0
    for chat in (c for part in (script.drills, script.plays) for group in part for c in group):
        here = _words(chat) & set(NEW_THEMES)
        if "Hint:" in _opening(chat) or BY_WORD.keys().isdisjoint(_words(chat)):
            told += bool(here)
        else:
            assert not here, _opening(chat)
            assert _words(chat) & set(THEMES)
            untold += 1
    assert told and untold


def test_the_player_has_an_inkling_that_fades_with_the_reach_of_the_rule():
    by_reach = {op.amount: inkling(op) for op in OPS if op.kind == "step"}
    assert by_reach[1] > by_reach[2] > by_reach[3] > 0
    assert all(inkling(op) < 0.5 for op in OPS)
