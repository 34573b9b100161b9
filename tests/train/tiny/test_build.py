import pytest

from spade_runtime.errors import UsageError
from spade_train.corpus import Corpus
from spade_train.tiny.build import build
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
