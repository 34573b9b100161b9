"""Every ablation and both settings run to their end, and leave a whole folder."""

import copy
from pathlib import Path

import pytest

pytest.importorskip("torch")

from spade_train.assemble import assembled  # noqa: E402
from spade_train.loop import train  # noqa: E402
from spade_train.presets import resolve  # noqa: E402
from spade_train.run_folder import RunFolder  # noqa: E402
from spade_train.skills import kind_of  # noqa: E402

pytestmark = pytest.mark.usefixtures("isolation")


def go(config, policy, warn=print):
    folder = RunFolder.create(Path(config.run_dir), config)
    with folder.locked(), assembled(config, folder, policy=policy, warn=warn) as run:
        start = copy.deepcopy(run.learner.model.state_dict())
        designs = []
        update = run.learner.update

        def spy(batch):
            designs.extend(row for row in batch.rows if row.role == "designer")
            return update(batch)

        run.learner.update = spy
        assert train(run)
        return folder, run, start, designs


def whole(folder):
    names = {p.name for p in folder.path.iterdir()}
    return {"config.yaml", "metrics.jsonl", "designs.jsonl", "episodes", "checkpoints"} <= names


@pytest.mark.parametrize(
    "ablation", ["no_corpus", "no_memory", "two_skills", "learning_potential", "solve_rate"]
)
def test_an_ablation_runs_to_its_end(forced, words, tmp_path, lines, ablation):
    config = resolve("tiny", overrides=words(tmp_path / "run", steps=2, ablation=ablation))
    folder, run, _, designs = go(config, forced())
    assert whole(folder)
    metrics = lines(folder.metrics)
    assert [line["step"] for line in metrics] == [0, 1, 2]
    assert designs
    tries = lines(folder.designs)
    assert any(t["document_id"] for t in tries) == (ablation != "no_corpus")
    if ablation == "no_memory":
        assert not any(t["exemplars"] for t in tries)
        assert len(run.state.memory) > 0  # still filled: the report shows it
    if ablation == "learning_potential":
        assert run.state.objective.averages


def test_a_frozen_designer_keeps_its_weights_while_the_agents_change(forced, words, tmp_path):
    import torch

    config = resolve("tiny", overrides=words(tmp_path / "run", steps=2, ablation="frozen_designer"))
    folder, run, start, designs = go(config, forced())
    assert designs == []
    now = run.learner.model.state_dict()
    frozen = run.designer.policy.model.state_dict()
    assert any(not torch.equal(start[name], now[name]) for name in start)
    assert all(torch.equal(start[name], frozen[name]) for name in start)


def test_tools_are_designed_and_played_through_the_tool_role(forced, words, tmp_path, lines):
    config = resolve("tiny", overrides=words(tmp_path / "run", steps=2, setting="tools",
                                             return_mode="best"))  # fmt: skip
    folder, run, _, designs = go(config, forced())
    assert whole(folder)
    # The random model solves none, so all designs are worth the same, and the run says so.
    assert designs == []
    assert lines(folder.metrics)[1]["guards/designer_equal"] == 1
    accepted = [d for d in lines(folder.designs) if d["verdict"] == "accepted"]
    assert {d["kind"] for d in accepted} == {"tool_use"}
    plays = [p for f in sorted(folder.episodes.glob("*.jsonl")) for p in lines(f)]
    assert {p["arm"] for p in plays} == {"unhinted", "hinted"}
    assert not any("fault" in p for p in plays)
    # The random model writes no calls, so it is reminded of them.
    assert any("No tool call was found" in m["content"] for p in plays for m in p["messages"])


def test_a_mixed_run_designs_and_plays_both_kinds_at_every_step(forced, words, tmp_path, lines):
    config = resolve(
        "tiny",
        overrides=words(
            tmp_path / "run",
            steps=2,
            setting="mixed",
            environments=8,
            skills_per_regeneration=4,
            designer_tries=6,
        ),
    )
    folder, run, *_ = go(config, forced())
    assert whole(folder)
    tries = lines(folder.designs)
    for step in (0, 1):
        accepted = [t for t in tries if t["step"] == step and t["verdict"] == "accepted"]
        assert {t["kind"] for t in accepted} == {"game", "tool_use"}
        played = {p["sha256"] for p in lines(folder.episodes / f"step-{step:06d}.jsonl")}
        assert played == {t["sha256"] for t in accepted}
    for attempt in tries:
        assert attempt["kind"] == kind_of(attempt["skill"])
    assert {t["skill"] for t in tries} == set(config.skill_pool)
    assert {record.kind for record in run.state.memory} == {"game", "tool_use"}


def test_all_candidates_invalid_for_a_whole_window_is_survived(forced, words, tmp_path, lines):
    policy = forced()
    policy.__class__ = policy.__class__.__mro__[1]  # the random model writes its own designs
    config = resolve("tiny", overrides=words(tmp_path / "run", steps=2, designer_max_tokens=48))
    folder, run, _, designs = go(config, policy)
    metrics = lines(folder.metrics)
    assert [line["designer/acceptance"] for line in metrics[:2]] == [0.0, 0.0]
    assert [line["designer/environments"] for line in metrics[:2]] == [0, 0]
    assert metrics[0]["agent/groups"] == 0
    # All alike: nothing can be learned from them, and the run says so.
    assert metrics[1]["guards/designer_below_floor"] == 1
    assert designs == []


def test_independent_seeds_give_the_arms_seeds_of_their_own(forced, words, tmp_path, lines):
    config = resolve("tiny", overrides=words(tmp_path / "run", steps=1, seed_pairing="independent"))
    folder, *_ = go(config, forced())
    seeds = {"unhinted": set(), "hinted": set()}
    for play in lines(folder.episodes / "step-000000.jsonl"):
        seeds[play["arm"]].add((play["name"], play["seed"]))
    assert seeds["unhinted"]
    assert seeds["hinted"]
    assert not seeds["unhinted"] & seeds["hinted"]
    assert lines(folder.metrics)[0]["designer/regret"] is not None


def test_a_gradient_that_is_not_finite_is_thrown_away_and_the_run_goes_on(
    forced, words, tmp_path, lines
):
    config = resolve("tiny", overrides=words(tmp_path / "run", steps=3, designer_scale=1e308))
    told = []
    folder, run, start, designs = go(config, forced(), told.append)
    assert designs
    metrics = lines(folder.metrics)
    assert "had no finite gradient and was thrown away; 10 in a row end the run" in told[0]
    bad_end = any("of the run's updates had no finite gradient" in text for text in told)
    assert bad_end == (run.state.failed_updates > 0)
    assert sum(line.get("guards/skipped_updates_designer") or 0 for line in metrics) > 0
    assert any(line.get("grad_norm/agent") for line in metrics)
