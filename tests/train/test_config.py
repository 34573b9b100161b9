import pytest

from spade_runtime.errors import ConfigError
from spade_train.config import RunConfig, build, load
from spade_train.presets import ABLATIONS, PRESETS, parse_overrides, resolve
from spade_train.skills import kind_of

CANONICAL = [
    "model",
    "setting",
    "ablation",
    "objective",
    "optimizer",
    "seed_pairing",
    "return_mode",
    "invalid_reward",
    "train_hints",
    "hinted_plays",
    "learning_rate",
    "adam_betas",
    "weight_decay",
    "clip_low",
    "clip_high",
    "kl_coefficient",
    "importance_weight_max",
    "steps",
    "environments",
    "seeds_per_group",
    "plays_per_seed",
    "minibatch_episodes",
    "regenerate_every",
    "designer_delay",
    "skills_per_regeneration",
    "memory_capacity",
    "max_turns",
    "context_tokens",
    "agent_max_tokens",
    "designer_max_tokens",
    "hint_max_tokens",
    "hint_temperature",
    "temperature",
    "top_p",
    "top_k",
    "anchor_low",
    "anchor_high",
    "anchor_ramp",
    "anchor_weight",
    "regret_weight",
    "regret_saturation",
    "designer_scale",
    "corpus_max_words",
    "blind_win_limit",
    "seed",
    "run_dir",
]

SHARED = {
    "learning_rate": 1e-6,
    "adam_betas": (0.9, 0.98),
    "weight_decay": 0.1,
    "clip_low": 0.20,
    "clip_high": 0.28,
    "importance_weight_max": 2.0,
    "temperature": 0.6,
    "top_p": 0.95,
    "top_k": 20,
    "steps": 400,
    "environments": 24,
    "seeds_per_group": 16,
    "plays_per_seed": 1,
    "hinted_plays": 16,
    "minibatch_episodes": 192,
    "max_turns": 25,
    "context_tokens": 32768,
    "agent_max_tokens": 8192,
    "designer_max_tokens": 16384,
    "hint_temperature": 0.3,
    "memory_capacity": 200,
    "difficulty": "medium",
    "objective": "blend",
    "invalid_reward": "none",
    "optimizer": "shared",
    "designer_scale": 32.0,
    "regret_saturation": 0.15,
    "regret_weight": 0.4,
    "anchor_weight": 0.6,
    "anchor_low": 0.4,
    "anchor_high": 0.6,
    "anchor_ramp": 0.25,
    "phases": (),
}
GAMES = {
    "setting": "games",
    "regenerate_every": 4,
    "designer_delay": 4,
    "skills_per_regeneration": 3,
    "corpus_max_words": 6000,
    "kl_coefficient": 0.0,
    "hint_max_tokens": 4096,
}
TOOLS = {
    "setting": "tools",
    "regenerate_every": 8,
    "designer_delay": 8,
    "skills_per_regeneration": 6,
    "corpus_max_words": 4000,
    "kl_coefficient": 0.005,
    "hint_max_tokens": 2048,
}
# The table of the paper's presets: what each says, besides the shared values.
TABLE = {
    "games-4b": GAMES,
    "games-8b": {
        **GAMES,
        "kl_coefficient": 0.005,
        "thinking": "both",
        "designer_max_tokens": 20000,
    },
    "games-30b": GAMES,
    "games-nemotron-30b": GAMES,
    "tools-4b": {
        **TOOLS,
        "steps": 500,
        "environments": 16,
        "seeds_per_group": 16,
        "regenerate_every": 32,
        "designer_delay": 32,
        "objective": "regret",
        "hinted_plays": 4,
        "hint_max_tokens": 512,
    },
    "tools-8b": {**TOOLS, "thinking": "both", "designer_max_tokens": 20000},
    "tools-30b": TOOLS,
}


@pytest.mark.parametrize("preset", sorted(TABLE))
def test_the_table_of_presets(preset):
    config = resolve(preset)
    expected = {**SHARED, **TABLE[preset]}
    assert {key: getattr(config, key) for key in expected} == expected


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_survives_its_yaml(preset, tmp_path):
    config = resolve(preset)
    path = tmp_path / "config.yaml"
    path.write_text(config.to_yaml(), encoding="utf-8")
    assert load(path) == config
    assert resolve(None, file=path) == config


def test_the_canonical_keys_are_printed():
    printed = parse_keys(resolve("games-4b").to_yaml())
    assert set(CANONICAL) <= printed
    assert printed == set(RunConfig.model_fields)


def parse_keys(text):
    return {line.partition(":")[0] for line in text.splitlines() if not line.startswith(("-", " "))}


def test_overrides_win_over_everything():
    config = resolve("games-4b", overrides=["seed=11", "run_dir=runs/a", "learning_rate=1e-5"])
    assert (config.seed, config.run_dir, config.learning_rate) == (11, "runs/a", 1e-5)


def test_a_file_lies_between_preset_and_words(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("preset: games-4b\nsteps: 7\nseed: 3\n", encoding="utf-8")
    config = resolve(None, file=path, overrides=["seed=4"])
    assert (config.preset, config.steps, config.seed) == ("games-4b", 7, 4)


def test_setting_takes_the_settings_values_and_keeps_the_presets_own():
    assert resolve("games-4b", overrides=["setting=tools"]).model_dump() == {
        **resolve("tools-30b").model_dump(),
        "preset": "games-4b",
        "model": "Qwen/Qwen3-4B-Instruct-2507",
    }
    tiny = resolve("tiny", overrides=["setting=tools"])
    assert tiny.kinds == ("tool_use",)
    assert tiny.regenerate_every == resolve("tiny").regenerate_every


def test_a_mixed_run_rotates_over_the_skills_of_both_kinds():
    mixed = resolve("games-4b", overrides=["setting=mixed"])
    assert mixed.kinds == ("game", "tool_use")
    assert len(set(mixed.skill_pool)) == len(mixed.skill_pool) == 12
    two = resolve("games-4b", overrides=["setting=mixed", "ablation=two_skills"])
    assert [kind_of(skill) for skill in two.skill_pool] == ["game", "tool_use"]


CHANGES = {
    "none": set(),
    "no_corpus": {"use_corpus"},
    "no_memory": {"use_memory"},
    "frozen_designer": {"train_designer"},
    "external_designer": {"train_designer", "designer_url", "designer_model"},
    "two_skills": {"skills"},
    "learning_potential": {"objective"},
    "solve_rate": {"objective"},
}


@pytest.mark.parametrize("preset", ["tiny", "games-4b", "tools-8b"])
@pytest.mark.parametrize("ablation", sorted(ABLATIONS))
def test_an_ablation_changes_one_thing(preset, ablation):
    words = [f"ablation={ablation}"]
    if ablation == "external_designer":
        words += ["designer_url=http://localhost:8000/v1", "designer_model=big"]
    plain, changed = resolve(preset).model_dump(), resolve(preset, overrides=words).model_dump()
    different = {key for key in plain if plain[key] != changed[key]} - {"ablation"}
    assert different == CHANGES[ablation]
    assert changed["ablation"] == ablation


def test_plays_of_the_reference_code():
    assert resolve("games-4b", overrides=["plays=reference"]).seeds_per_group == 8
    assert resolve("games-4b", overrides=["plays=reference"]).hinted_plays == 8
    assert resolve("tools-4b", overrides=["plays=reference"]).seeds_per_group == 12
    with pytest.raises(ConfigError, match="seeds_per_group=8 for environments=24"):
        resolve("games-4b", overrides=["plays=reference", "seeds_per_group=16"])


def test_hinted_plays_follow_the_group():
    assert (
        resolve("games-4b", overrides=["seeds_per_group=4", "plays_per_seed=4"]).group_plays == 16
    )
    assert resolve("games-4b", overrides=["seeds_per_group=5"]).hinted_plays == 5
    assert resolve("games-4b", overrides=["hinted_plays=3"]).hinted_plays == 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["learning_rte=1"],
            "key 'learning_rte'; did you mean 'learning_rate'",
        ),
        (["preset=games4b"], "unknown preset 'games4b'; did you mean 'games-4b'"),
        (["ablation=no_corpsu"], "unknown ablation 'no_corpsu'; did you mean 'no_corpus'"),
        (["ablation=fixed_pool"], "ablation=fixed_pool is not offered yet"),
        (["setting=game"], "unknown setting 'game'; did you mean 'games'"),
        (["steps"], "an override is written key=value, got 'steps'"),
        (["steps=0"], "steps=0 is not possible: write 1 or more"),
        (["steps=abc"], "steps='abc' is not possible: write a whole number"),
        (["steps=1.5"], "steps=1.5 is not possible: write a whole number"),
        (["top_p=most"], "top_p='most' is not possible: write a number"),
        (["top_p=1.5"], "top_p=1.5 is not possible: write 1 or less"),
        (["learning_rate=0"], "learning_rate=0 is not possible: write a number above 0"),
        (["train_hints=maybe"], "train_hints='maybe' is not possible: write true or false"),
        (["corpus=3"], "corpus=3 is not possible: write a list"),
        (["run_dir=[a]"], "run_dir=.*is not possible: write a text"),
        (["steps=[}"], "the value of steps is not readable"),
        (["objective=luck"], "objective='luck' is not possible; it is 'blend'"),
        (["invalid_reward=2"], "invalid_reward=2 is not possible"),
        (["seeds_per_group=x"], "seeds_per_group='x' is not possible"),
        (["designer_delay=6"], "designer_delay=6 is no positive multiple of regenerate_every=4"),
        (["designer_delay=2"], "use designer_delay=4"),
        (["seeds_per_group=1"], "a group of one play, which has no advantage"),
        (["hinted_plays=17"], "hinted_plays=17 exceeds the 16 unhinted plays"),
        (["hinted_plays=0"], "hinted_plays=0 leaves objective=blend without a regret"),
        (["anchor_low=0.7"], "anchor_low=0.7 lies above anchor_high=0.6"),
        (["regret_weight=0", "anchor_weight=0"], "pays nothing"),
        (["context_tokens=8000"], "agent_max_tokens=8192 leaves no room for a prompt"),
        (["skills=[optimisation]"], "unknown skill 'optimisation'.* did you mean 'optimization'"),
        (["skills=[optimization,optimization]"], "names a skill twice"),
        (["environments=2"], "each skill needs a slot"),
        (["setting=mixed", "skills=[optimization]"], "has none of kind tool_use"),
        (["setting=mixed", "skills_per_regeneration=1"], "pools of one kind; use at least 2"),
        (["ablation=external_designer"], "designer_url=http://HOST:PORT/v1"),
        (["designer_url=http://x/v1"], "can't be trained here"),
        (["train_hints=true", "ablation=frozen_designer"], "the frozen designer writes the hints"),
        (["corpus=[]"], "corpus is empty"),
        (["ablation=no_corpus", "use_corpus=true"], "means use_corpus=false, but use_corpus=true"),
        (["ablation=no_memory", "use_memory=true"], "means use_memory=false"),
        (["ablation=frozen_designer", "train_designer=true"], "means train_designer=false"),
        (["ablation=solve_rate", "objective=regret"], "means objective=anchor, but objective=reg"),
        (["ablation=two_skills", "skills=[optimization]"], "but skills=.optimization. was asked"),
        (
            ["train_designer=false", "designer_url=http://x/v1", "designer_model=m"],
            "with ablation=external_designer alone, not with ablation=none",
        ),
        (["designer_model=m"], "designer_model=m alone names no designer"),
        (["judge_url=host", "judge_model=m"], "judge_url=host is no URL"),
        (["learning_rate=.inf"], "learning_rate=inf is not possible: write a finite number"),
        (["designer_learning_rate=1e999"], "write a finite number"),
        (["weight_decay=.inf"], "weight_decay=inf"),
        (["kl_coefficient=.inf"], "kl_coefficient=inf"),
        (["temperature=.inf"], "temperature=inf"),
        (["temperature=1e-300"], "temperature=1e-300 is too small to divide by; use 0.01"),
        (["hint_temperature=1e-300"], "hint_temperature=1e-300 is too small"),
        (["seed=true"], "seed=true is not possible: write a number"),
        (["invalid_reward=yes"], "invalid_reward=true is not possible: write a number"),
        (["designer_learning_rate=on"], "designer_learning_rate=true"),
        (["environments=100000000"], "3,200,000,000 episodes a step; use 1,000,000 at most"),
        (["workers=100000"], "too many processes"),
        (["phases=[{from: 9, learning_rate: .inf}]"], "learning_rate=inf"),
        (["phases=[{from: 9, learning_rate: true}]"], "learning_rate=true"),
        (["judge_url=http://x/v1"], "judge_url alone names no judge; give .* judge_model=NAME"),
        (["judge_model=big"], "judge_model alone names no judge"),
        (["lora_rank=8", "lora_targets=[]"], "use lora_targets=.all-linear."),
        (["phases=[{anchor_low: 0.2}]"], "add `from: STEP`"),
        (["phases=[{from: 9, anchor_lo: 0.2}]"], "did you mean 'anchor_low'"),
        (["phases=[{from: 400}]"], "before the run's last"),
        (["phases=[{from: 9}, {from: 9}]"], "must come after step 9"),
        (["phases=[{from: 9, anchor_low: 0.9}]"], "anchor_low=0.9 lies above"),
        (["phases=[{from: 9, model: other}]"], "unknown key that a phase may change 'model'"),
    ],
)
def test_what_can_not_be_is_refused_with_the_reason(words, message):
    preset = None if words[0].startswith("preset=") else "games-4b"
    with pytest.raises(ConfigError, match=message):
        resolve(preset, overrides=words)


def test_a_file_that_undoes_the_ablation_of_the_command_line_is_refused(tmp_path):
    path = tmp_path / "run.yaml"
    path.write_text(resolve("games-4b").to_yaml(), encoding="utf-8")
    with pytest.raises(ConfigError, match="means use_corpus=false"):
        resolve(file=path, overrides=["ablation=no_corpus"])
    path.write_text(resolve("games-4b", overrides=["ablation=no_corpus"]).to_yaml())
    assert not resolve(file=path).use_corpus


def test_the_two_skills_may_be_chosen_and_limits_be_switched_off():
    import yaml

    skills = ("causal_inference", "optimization")
    words = ["ablation=two_skills", f"skills=[{','.join(skills)}]", "max_grad_norm=.inf"]
    config = resolve("games-4b", overrides=words)
    assert config.skills == skills
    assert build(yaml.safe_load(config.to_yaml())) == config


def test_phases_hold_from_their_step_on():
    phases = "phases=[{from: 100, anchor_low: 0.2, anchor_high: 0.4}, {from: 200, max_turns: 10}]"
    config = resolve("games-4b", overrides=[phases])
    assert config.at(99) == config
    assert (config.at(100).anchor_low, config.at(100).max_turns) == (0.2, 25)
    assert (config.at(399).anchor_high, config.at(399).max_turns) == (0.4, 10)


def test_the_later_phase_of_4b_ships_commented_out_and_needs_its_step():
    from importlib.resources import files

    text = files("spade_train.presets").joinpath("games-4b.yaml").read_text(encoding="utf-8")
    assert "#   - from: ???" in text
    import yaml

    later = yaml.safe_load("\n".join(line.removeprefix("# ") for line in text.splitlines()[4:]))
    with pytest.raises(ConfigError, match="add `from: STEP`"):
        build({**resolve("games-4b").model_dump(), **later})
    later["phases"][0]["from"] = 200
    assert build({**resolve("games-4b").model_dump(), **later}).at(300).context_tokens == 49152


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff\xfe", "can't read the configuration"),
        (b"a: [", "is no YAML"),
        (b"- 1\n- 2\n", "holds a list, not `key: value` lines"),
        (b"stpes: 3\n", "did you mean 'steps'"),
    ],
)
def test_bad_files(tmp_path, content, message):
    path = tmp_path / "bad.yaml"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=message):
        resolve("tiny", file=path)


def test_a_missing_file(tmp_path):
    with pytest.raises(ConfigError, match=r"there is no configuration file .*none.yaml; name a"):
        resolve("tiny", file=tmp_path / "none.yaml")
    with pytest.raises(ConfigError, match="can't read the configuration"):
        resolve("tiny", file=tmp_path)


def test_incomplete_values_name_what_is_missing():
    with pytest.raises(ConfigError, match="no value for 'model'"):
        build({"setting": "games"})


def test_roles_may_differ():
    config = resolve("tiny", overrides=["learning_rate=7e-4", "designer_learning_rate=3e-4"])
    assert config.kl_of("designer") > config.kl_of("agent") == config.kl_coefficient
    assert config.learning_rate_of("designer") < config.learning_rate_of("agent") == 7e-4
    shared = resolve("games-8b")
    assert shared.kl_of("designer") == shared.kl_of("agent") == 0.005


def test_override_words():
    assert parse_overrides(["--run-dir=a b", "seed= 3", "model="]) == {
        "run_dir": "a b",
        "seed": 3,
        "model": "",
    }
