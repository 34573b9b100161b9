"""What may come in and must not stop a run, nor be trained on: each in a run of its own."""

import json
from pathlib import Path

import pytest

pytest.importorskip("torch")

from spade_train.assemble import assembled  # noqa: E402
from spade_train.loop import train  # noqa: E402
from spade_train.presets import resolve  # noqa: E402
from spade_train.run_folder import RunFolder  # noqa: E402

pytestmark = pytest.mark.usefixtures("isolation")

HINT = "Mind how long your answer is."
# Sound to the validator, which never says half a character; a random agent does.
HALF = '"\\ufffd" in action'
TOUCHY = '''class Touchy{number}Env(TextEnv):
    """Feed the owl {number}."""

    skill = "optimization"
    max_turns = 3

    def reset(self, seed=None):
        self.rng = random.Random(seed)
        self.goal = self.rng.randrange(6)
        self.turn = 0
        return f"Turn 1. Case {{self.rng.randrange(10**6)}}: say something.", {{}}

    def step(self, action):
        self.turn += 1
        if {cause}:
            raise ValueError("that answer")
        if len(action) % 6 != self.goal:
            return f"No. Turn {{self.turn + 1}}.", {wrong}, self.turn >= 3, False, {{}}
        return "Yes.", 1.0, True, False, {{}}

    def solution(self):
        return ["x" * (self.goal + 6)]
'''


def designer(source):
    """Always writes this source, and a hint that can be used."""

    def write(prompt, seed):
        asked = "hint" in prompt[:200].lower() and "class" in prompt
        return HINT if asked else f"```python\n{source}```"

    return write


def go(config, policy, warn=lambda _: None):
    """Run to the end; returns the folder and every row that was trained on."""
    rows = []
    folder = RunFolder.create(Path(config.run_dir), config)
    with folder.locked(), assembled(config, folder, warn=warn, policy=policy) as run:
        update = run.learner.update

        def spy(batch):
            rows.extend(batch.rows)
            return update(batch)

        run.learner.update = spy
        assert train(run)
    return folder, rows


def test_plays_that_a_fault_voids_are_never_trained_on(forced, words, tmp_path, lines):
    policy = forced(write=designer(TOUCHY.format(number=1, cause=HALF, wrong=-0.1)))
    config = resolve("tiny", overrides=words(tmp_path / "run", steps=2, seeds_per_group=16))
    folder, rows = go(config, policy)
    plays = [p for f in sorted(folder.episodes.glob("step-*")) for p in lines(f)]
    void = [p for p in plays if "fault" in p]
    assert void
    assert {p["fault"]["code"] for p in void} == {"SPD401"}
    assert not any("episode_return" in p for p in void)
    metrics = lines(folder.metrics)
    assert sum(line.get("faults/EnvRaised") or 0 for line in metrics) == len(void)
    whole = [p for p in plays if "fault" not in p and p["arm"] == "unhinted"]
    assert len([row for row in rows if row.role == "agent"]) == len(whole)
    # One that faults can't be judged: it is paid as an invalid one.
    assert sum(line.get("designer/unjudged") or 0 for line in metrics) > 0


def test_groups_of_equal_returns_are_counted_and_teach_the_agent_nothing(
    forced, words, tmp_path, lines
):
    source = TOUCHY.format(number=2, cause="False", wrong=0.0).replace(
        "len(action) % 6 != self.goal", "True"
    )
    source = source.replace("if True:", 'if action != f"{self.goal}{self.goal}":')
    source = source.replace('"x" * (self.goal + 6)', 'f"{self.goal}{self.goal}"')
    config = resolve("tiny", overrides=words(tmp_path / "run", steps=2, kl_coefficient=0.0))
    folder, rows = go(config, forced(write=designer(source)))
    metrics = lines(folder.metrics)
    assert all(line["agent/groups"] > 0 for line in metrics[:2])
    assert all(line["agent/groups_equal"] == line["agent/groups"] for line in metrics[:2])
    assert all(row.advantage == 0.0 for row in rows if row.role == "agent")
    assert all(line["loss/agent"] is None for line in metrics)


def test_documents_that_are_huge_or_no_text_do_not_end_a_run(forced, words, tmp_path, lines):
    corpus = tmp_path / "odd.jsonl"
    texts = {"big": "word " * 2_000_000, "dense": "word" * 2_000_000, "half": "a lone \ud800 half"}
    rows = (json.dumps({"id": name, "text": text}) for name, text in texts.items())
    corpus.write_text("\n".join(rows) + "\n")
    config = resolve(
        "tiny",
        overrides=words(tmp_path / "run", steps=1, corpus=corpus, corpus_max_words=4000),
    )
    told: list[str] = []
    folder, _ = go(config, forced(), warn=told.append)
    designs = lines(folder.designs)
    assert {d["document_id"] for d in designs} == {"big", "dense"}
    assert any("odd.jsonl:3 can't be used" in line for line in told)
    assert any(d["verdict"] == "accepted" for d in designs)


def test_an_agent_that_says_nothing_loses_and_the_run_goes_on(forced, words, tmp_path, lines):
    policy = forced()
    converse = policy.converse

    def mute(replies):
        for reply in replies:
            reply.token_ids, reply.logprobs = [policy.template.end_of_turn], [-1.0]
            reply.finish = "stop"
        return replies

    policy.converse = lambda *asked: mute(converse(*asked))
    config = resolve("tiny", overrides=words(tmp_path / "run", steps=1))
    folder, _ = go(config, policy)
    plays = lines(folder.episodes / "step-000000.jsonl")
    assert plays
    assert {m["content"] for p in plays for m in p["messages"] if m["role"] == "assistant"} == {""}
    assert not any("fault" in p for p in plays)


@pytest.mark.parametrize("text", ["", "<think>" + "hm " * 300, "I would rather not."])
def test_a_designer_that_gives_no_code_at_all_leaves_the_run_without_environments(
    forced, words, tmp_path, lines, text
):
    config = resolve("tiny", overrides=words(tmp_path / "run", steps=2, designer_tries=2))
    folder, rows = go(config, forced(write=lambda prompt, seed: text))
    metrics = lines(folder.metrics)
    assert [line["step"] for line in metrics] == [0, 1, 2]
    assert [line["designer/environments"] for line in metrics[:2]] == [0, 0]
    assert rows == []
    assert all(d["reason"] for d in lines(folder.designs))


@pytest.mark.parametrize("hint", ["", "word " * 5000])
def test_a_hint_that_can_not_be_used_leaves_its_environment_without_a_regret(
    forced, words, tmp_path, lines, sources, hint
):
    def write(prompt, seed):
        asked = "hint" in prompt[:200].lower() and "class" in prompt
        return hint if asked else f"```python\n{sources[0]}```"

    config = resolve(
        "tiny",
        overrides=words(tmp_path / "run", steps=1, context_tokens=30_000, environments=2),
    )
    policy = forced(write=write)
    policy.context_tokens = policy.model.config.max_position_embeddings = 30_000
    folder, _ = go(config, policy)
    metrics = lines(folder.metrics)
    assert metrics[0]["designer/environments"] > 0
    assert metrics[0]["designer/hinted_share"] == 0.0
    assert metrics[0]["designer/regret"] is None
    assert {p["arm"] for p in lines(folder.episodes / "step-000000.jsonl")} == {"unhinted"}
