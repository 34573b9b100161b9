"""A run stands beside others only when it was made with the same things."""

import json

import pytest

from spade_runtime.errors import UsageError
from spade_train.config import build
from spade_train.evidence.arms import ARMS, plan
from spade_train.evidence.stamps import (
    Attempt,
    Stamp,
    code_hash,
    config_hash,
    heldout_hash,
    refuse_stale,
    stamp_of,
    state_of,
    weights_hash,
)
from spade_train.presets import resolve


@pytest.fixture
def model(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"weights")
    (folder / "README.md").write_text("A card.")
    return folder


@pytest.fixture
def planned(tmp_path, model, heldout_folder):
    words = [f"model={model}", f"heldout={heldout_folder}"]
    return plan(tmp_path / "runs", arms=["full"], seeds=[3], steps=4, words=words)[0]


def test_each_arm_differs_from_the_full_one_in_its_own_words_alone(tmp_path):
    planned = {one.arm: one for one in plan(tmp_path, seeds=[2])}
    assert list(planned) == [arm.name for arm in ARMS]
    full = planned["full"].config.model_dump()
    changes = {
        name: {key for key, value in one.config.model_dump().items() if value != full[key]}
        - {"run_dir", "ablation"}
        for name, one in planned.items()
    }
    assert changes == {
        "full": set(),
        "no_memory": {"use_memory"},
        "no_corpus": {"use_corpus"},
        "frozen_designer": {"train_designer"},
        "solve_rate": {"objective"},
        "unpaired_seeds": {"seed_pairing"},
    }
    assert {one.config.seed for one in planned.values()} == {2}


def test_a_plan_goes_seed_by_seed_and_measures_on_the_way(tmp_path):
    planned = plan(tmp_path, arms=["frozen_designer", "full"], seeds=[5, 1], steps=20)
    assert [(one.arm, one.seed) for one in planned] == [
        ("full", 5),
        ("frozen_designer", 5),
        ("full", 1),
        ("frozen_designer", 1),
    ]
    assert {one.config.heldout_every for one in planned} == {3}
    assert planned[0].folder == tmp_path / "full" / "seed-5"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"arms": ["frozen"]}, "unknown arm 'frozen'"),
        ({"seeds": [1, 1]}, "seeds must be different"),
        ({"seeds": []}, "at least one"),
        ({"words": ["lr=1"]}, "unknown configuration key 'lr'"),
        ({"words": ["run_dir=x"]}, "run_dir can't be given .* use --runs"),
        ({"words": ["ablation=no_memory"]}, "what the arm no_memory differs in"),
        ({"words": ["use_corpus=false"], "arms": ["full"]}, "what the arm no_corpus differs in"),
        ({"words": ["objective=blend"]}, "what the arm solve_rate differs in"),
    ],
)
def test_a_plan_that_can_not_be_is_refused(tmp_path, options, message):
    with pytest.raises(UsageError, match=message):
        plan(tmp_path, **options)


def test_words_that_make_no_arm_of_another_are_for_every_run(tmp_path):
    words = ["seed_pairing=paired", "objective=regret"]
    (one,) = plan(tmp_path, arms=["full"], seeds=[1], words=words)
    assert one.config.objective == "regret"


def test_where_a_run_lies_does_not_count_and_what_it_does_counts():
    values = resolve("tiny").model_dump()
    same = [build({**values, "run_dir": place}) for place in ("a", "b")]
    assert config_hash(same[0]) == config_hash(same[1])
    assert config_hash(build({**values, "seed": 9})) != config_hash(same[0])


def test_a_whole_configuration_in_a_file_is_the_same_run(tmp_path):
    for one in plan(tmp_path, seeds=[1], steps=20):
        file = tmp_path / f"{one.arm}.yaml"
        file.write_text(one.config.to_yaml(), encoding="utf-8")
        assert resolve(file=file) == one.config


def test_weights_are_what_runs_and_not_what_is_told_of_them(model):
    config = resolve("tiny", overrides=[f"model={model}"])
    before = weights_hash(config)
    (model / "README.md").write_text("Another card.")
    assert weights_hash(config) == before
    (model / "model.safetensors").write_bytes(b"other weights")
    assert weights_hash(config) != before


def test_held_out_environments_count_with_their_hints(tmp_path):
    (tmp_path / "a.py").write_text("class AEnv(TextEnv):\n    pass\n")
    config = resolve("tiny", overrides=[f"heldout={tmp_path}"])
    before = heldout_hash(config)
    (tmp_path / "a.hint.txt").write_text("Look twice.")
    assert heldout_hash(config) != before


def test_the_code_has_one_hash():
    assert code_hash() == code_hash()
    assert len(code_hash()) == 64


def test_a_run_is_new_then_unfinished_then_finished(planned):
    now = stamp_of(planned.config)
    assert state_of(planned, now) == ("new", "")
    now.write(planned.stamp)
    assert state_of(planned, now) == ("new", "")
    planned.folder.mkdir(parents=True)
    metrics = planned.folder / "metrics.jsonl"
    metrics.write_text('{"step": 0}\n{"step": 1, "fl')  # killed within a line
    assert state_of(planned, now) == ("unfinished", "")
    metrics.write_text('{"step": 0}\n{"step": 1, "flush": true}\n')
    assert state_of(planned, now) == ("finished", "")


def test_a_run_of_other_making_is_stale_and_refused(planned, model, tmp_path):
    stamp_of(planned.config).write(planned.stamp)
    planned.folder.mkdir(parents=True)
    (planned.folder / "metrics.jsonl").write_text('{"step": 0, "flush": true}\n')
    (model / "model.safetensors").write_bytes(b"other weights")
    state, why = state_of(planned, stamp_of(planned.config))
    assert (state, why) == ("stale", "made with other weights")
    with pytest.raises(UsageError, match=r"1 of the runs .*full seed 3: made with .*STALE=redo"):
        refuse_stale({planned.name: (state, why)}, tmp_path)
    refuse_stale({planned.name: ("finished", "")}, tmp_path)


def test_what_a_run_wrote_down_counts_beside_its_stamp(planned):
    now = stamp_of(planned.config)
    now.write(planned.stamp)
    planned.folder.mkdir(parents=True)
    written = planned.folder / "config.yaml"
    written.write_text(planned.config.to_yaml(), encoding="utf-8")
    assert state_of(planned, now) == ("unfinished", "")
    other = planned.config.model_copy(update={"learning_rate": 0.5})
    written.write_text(other.to_yaml(), encoding="utf-8")
    assert state_of(planned, now) == ("stale", "made with other settings")
    written.write_text("no_longer_a_key: 1\n", encoding="utf-8")
    assert state_of(planned, now)[0] == "stale"


def test_a_folder_without_a_readable_stamp_is_stale(planned):
    planned.folder.mkdir(parents=True)
    (planned.folder / "config.yaml").write_text("steps: 4\n")
    now = stamp_of(planned.config)
    assert state_of(planned, now)[0] == "stale"
    planned.stamp.write_text("{}")
    assert state_of(planned, now)[0] == "stale"


def test_a_stamp_comes_back_as_it_was_written(tmp_path):
    stamp = Stamp("a", "b", "c", [Attempt("d", 10.0, 15.0, -9), Attempt("e", 10.0, 5.0, 0)])
    stamp.write(tmp_path / "stamp.json")
    assert Stamp.read(tmp_path / "stamp.json") == stamp
    assert stamp.cpu_rate == 1.0
    assert Stamp("a", "b", "c").cpu_rate is None
    assert json.loads((tmp_path / "stamp.json").read_text())["attempts"][0]["exit_code"] == -9
