"""The loop in one process: real sandbox and validator, a small model that trains in both roles."""

import json
import resource
import signal

import pytest

pytest.importorskip("torch")

from spade_train.assemble import assembled  # noqa: E402
from spade_train.errors import CheckpointError, PolicyUnavailable  # noqa: E402
from spade_train.loop import train  # noqa: E402
from spade_train.presets import resolve  # noqa: E402
from spade_train.resumption import place_to_go_on, take_up  # noqa: E402
from spade_train.run_folder import RunFolder  # noqa: E402
from spade_train.state import Checkpoints  # noqa: E402

pytestmark = pytest.mark.usefixtures("isolation")


class Broken(Exception):
    """Stands for a kill: nothing after it runs."""


def run(config, policy, *, folder=None, stop_after=None, kill_in=None):
    """Begin a run, or go on with one; kill_in=(step, phase) dies there."""
    resumed = folder is not None
    folder = folder or RunFolder.create(config_dir(config), config)
    done = []

    class Watcher:
        def phase(self, name):
            if kill_in == (len(done) + start, name):
                raise Broken

        def step_done(self, line):
            done.append(line)

    start = 0
    with folder.locked():
        found = place_to_go_on(Checkpoints(folder.checkpoints), config) if resumed else None
        with assembled(
            config,
            folder,
            watcher=Watcher(),
            policy=policy,
            should_stop=lambda: stop_after is not None and len(done) >= stop_after,
        ) as parts:
            if found:
                start = found[1]["state"]["step"]
                take_up(parts, *found)
            else:
                parts.records.checkpoint(parts.state, parts.learner, config, force=True)
            return folder, train(parts), parts


def config_dir(config):
    from pathlib import Path

    return Path(config.run_dir)


def contents(folder, lines, timeless):
    episodes = {p.name: lines(p) for p in sorted(folder.episodes.glob("*.jsonl"))}
    return [timeless(line) for line in lines(folder.metrics)], lines(folder.designs), episodes


SHARED = {"steps": 4, "regenerate_every": 2, "designer_delay": 2}


def test_a_run_goes_from_end_to_end_and_its_folder_is_complete(forced, words, tmp_path, lines):
    config = resolve("tiny", overrides=words(tmp_path / "run", **SHARED))
    folder, complete, parts = run(config, forced())
    assert complete
    metrics = lines(folder.metrics)
    assert [line["step"] for line in metrics] == [0, 1, 2, 3, 4]
    assert [line["designer/acceptance"] is not None for line in metrics] == [1, 0, 1, 0, 0]
    assert [line["designer/band_share"] is not None for line in metrics] == [0, 1, 0, 1, 0]
    assert metrics[-1]["flush"] is True
    assert any((line["agent/win_rate"] or 0) > 0 for line in metrics)
    # Designs made at 0 are paid at 2, those made at 2 at the flush.
    assert [line.get("designer/samples") is not None for line in metrics] == [0, 0, 1, 0, 1]
    assert metrics[2]["loss/designer"] is not None
    assert all(
        line["importance_weight_mean"] == pytest.approx(1, abs=1e-3)
        for line in metrics
        if line["importance_weight_mean"] and line["step"] in (0, 1, 3)
    )
    designs = lines(folder.designs)
    assert {d["verdict"] for d in designs} == {"accepted", "rejected"}
    assert all(d["hint"] for d in designs if d["verdict"] == "accepted")
    assert any(d["raw_text_if_no_code"] for d in designs)
    stored = list((folder.path / "pool").glob("*/*/env.json"))
    assert {json.loads(p.read_text())["sha256"] for p in stored} == {
        d["sha256"] for d in designs if d["verdict"] == "accepted"
    }
    assert len(parts.state.memory) == sum(d["verdict"] == "accepted" for d in designs)
    assert parts.state.designs == []


def test_both_arms_play_the_same_seeds_and_only_unhinted_plays_train(
    forced, words, tmp_path, lines
):
    config = resolve("tiny", overrides=words(tmp_path / "run", **SHARED))
    policy = forced()
    trained = []
    folder = RunFolder.create(tmp_path / "run", config)
    with folder.locked(), assembled(config, folder, policy=policy) as parts:
        update = parts.learner.update

        def spy(batch):
            trained.extend(batch.rows)
            return update(batch)

        parts.learner.update = spy
        train(parts)
    hint = list(policy.template.plain("Mind how long"))
    for step in range(4):
        plays = lines(folder.episodes / f"step-{step:06d}.jsonl")
        arms = {}
        for play in plays:
            arms.setdefault(play["name"], {}).setdefault(play["arm"], []).append(play["seed"])
            assert "Hint:" not in play["observations"][0]
            assert ("Hint:" in play["messages"][0]["content"]) == (play["arm"] == "hinted")
            assert ("hint" in play) == (play["arm"] == "hinted")
        for seeds in arms.values():
            assert len(set(seeds["unhinted"])) == config.seeds_per_group
            assert ("hinted" in seeds) == (step % 2 == 0)
            assert seeds.get("hinted", seeds["unhinted"]) == seeds["unhinted"]
    agent = [row for row in trained if row.role == "agent"]
    assert agent
    for row in agent:
        text = policy.decode(row.ids)
        assert "Hint:" not in text
        assert not any(row.ids[i : i + len(hint)] == hint for i in range(len(row.ids)))
    assert {row.role for row in trained} == {"agent", "designer"}


@pytest.fixture(scope="module")
def unbroken(forced, words, lines, timeless, tmp_path_factory):
    """What a whole run writes."""
    path = tmp_path_factory.mktemp("unbroken") / "run"
    folder, _, _ = run(resolve("tiny", overrides=words(path, **SHARED)), forced())
    return contents(folder, lines, timeless)


@pytest.mark.parametrize(
    "kill", [(0, "designing"), (1, "playing"), (2, "learning"), (2, "designing"), (3, "learning")]
)
def test_a_run_that_died_anywhere_ends_like_the_unbroken_one(
    forced, words, tmp_path, lines, timeless, unbroken, kill
):
    whole = resolve("tiny", overrides=words(tmp_path / "run", **SHARED))
    expected = unbroken
    with pytest.raises(Broken):
        run(whole, forced(), kill_in=kill)
    # A process that died while it wrote leaves half a line and half a file.
    folder = RunFolder.open(tmp_path / "run")
    with folder.metrics.open("a") as log:
        log.write('{"step": 99, "half')
    (folder.episodes / "step-000099.partial").write_text("{")
    _, complete, _ = run(whole, forced(), folder=folder)
    assert complete
    assert contents(folder, lines, timeless) == expected
    assert len(expected[0]) == 5


def test_a_stop_is_at_a_steps_end_and_resumes(forced, words, tmp_path, lines, timeless):
    config = resolve("tiny", overrides=words(tmp_path / "run", **SHARED))
    folder, complete, _ = run(config, forced(), stop_after=2)
    assert not complete
    assert [line["step"] for line in lines(folder.metrics)] == [0, 1]
    _, complete, _ = run(config, forced(), folder=folder)
    assert complete
    assert [line["step"] for line in lines(folder.metrics)] == [0, 1, 2, 3, 4]


def test_a_stop_between_checkpoints_loses_nothing(
    forced, words, tmp_path, lines, timeless, unbroken
):
    config = resolve("tiny", overrides=words(tmp_path / "run", **SHARED, checkpoint_every=4))
    folder, complete, _ = run(config, forced(), stop_after=3)
    assert not complete
    assert Checkpoints(folder.checkpoints).steps() == [0, 3]
    _, complete, _ = run(config, forced(), folder=folder)
    assert complete
    assert contents(folder, lines, timeless) == unbroken


@pytest.mark.parametrize("steps", [1, 3])
def test_a_run_that_is_made_longer_ends_like_one_that_long(
    forced, words, tmp_path, lines, timeless, unbroken, steps
):
    """Its flush and its last step are done again as steps like any other; 3 ends amid a window."""
    short = resolve("tiny", overrides=words(tmp_path / "run", **{**SHARED, "steps": steps}))
    folder, complete, _ = run(short, forced())
    assert complete
    assert lines(folder.metrics)[-1]["flush"]
    longer = resolve("tiny", overrides=words(tmp_path / "run", **SHARED))
    _, complete, _ = run(longer, forced(), folder=folder)
    assert complete
    assert contents(folder, lines, timeless) == unbroken


def test_designs_of_a_regeneration_that_did_not_end_are_kept(forced, words, tmp_path, lines):
    policy = forced()
    generate, asked = policy.generate, []

    def failing(prompts, sampling, seeds):
        if sampling.max_tokens > 500:  # designs
            asked.append(prompts)
            if len(asked) == 2:
                done = generate(prompts[:1], sampling, seeds[:1])
                raise PolicyUnavailable("the server gave up", {0: done[0]})
        return generate(prompts, sampling, seeds)

    policy.generate = failing
    config = resolve("tiny", overrides=words(tmp_path / "run", **SHARED, environments=6))
    folder = RunFolder.create(tmp_path / "run", config)
    warnings = []
    with (
        folder.locked(),
        assembled(config, folder, policy=policy, warn=warnings.append) as parts,
        pytest.raises(PolicyUnavailable),
    ):
        train(parts)
    [kept] = folder.path.glob("rescued-*")
    assert warnings == [f"the designs that were written are in {kept}"]
    tries = lines(kept)
    assert [t["try"] for t in tries] == [0] * 6 + [1]
    assert {t["verdict"] for t in tries[:6]} == {"accepted", "rejected"}
    assert lines(folder.designs) == []


def test_a_finished_run_stays_as_it_is(forced, words, tmp_path, lines):
    config = resolve("tiny", overrides=words(tmp_path / "run", steps=1))
    folder, _, _ = run(config, forced())
    before = folder.metrics.read_bytes()
    _, complete, _ = run(config, forced(), folder=folder)
    assert complete
    assert folder.metrics.read_bytes() == before


def test_a_resume_from_other_weights_is_refused(forced, words, tmp_path):
    """The model is the reference of the KL too: with another one the run would be another run."""
    config = resolve("tiny", overrides=words(tmp_path / "run", steps=2))
    folder, _, _ = run(config, forced(), stop_after=1)
    with pytest.raises(CheckpointError, match="other weights"):
        run(config, forced(seed=5), folder=folder)


def test_a_disk_that_is_too_full_for_a_checkpoint_is_reported_and_the_run_goes_on(
    forced, words, tmp_path, lines
):
    """A limit on the size of files stands for the disk: logs fit under it, weights don't."""
    config = resolve("tiny", overrides=words(tmp_path / "run", steps=2))
    folder = RunFolder.create(tmp_path / "run", config)
    warnings = []
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with folder.locked(), assembled(config, folder, policy=forced(), warn=warnings.append) as parts:
        parts.records.checkpoint(parts.state, parts.learner, config, force=True)
        resource.setrlimit(resource.RLIMIT_FSIZE, (90_000, limit[1]))
        try:
            assert train(parts)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limit)
            signal.signal(signal.SIGXFSZ, handler)
    assert "checkpoint of step 1 can't be written" in warnings[0]
    assert "the run goes on, but a kill now loses everything since step 0" in warnings[0]
    assert [w.partition(" can't")[0] for w in warnings] == [
        f"the checkpoint of step {step}" for step in (1, 2, 2)
    ]
    assert [line["step"] for line in lines(folder.metrics)] == [0, 1, 2]
    assert [p.name for p in folder.checkpoints.iterdir()] == ["step-000000"]
    assert parts.records.checkpoints.newest_sound() == 0
    # What was not kept is done again: nothing is lost but time.
    _, complete, _ = run(config, forced(), folder=folder)
    assert complete
    assert [line["step"] for line in lines(folder.metrics)] == [0, 1, 2]


def test_a_first_checkpoint_that_can_not_be_written_puts_the_whole_run_at_risk_until_one_is(
    forced, words, tmp_path, lines
):
    config = resolve("tiny", overrides=words(tmp_path / "run", steps=2))
    folder = RunFolder.create(tmp_path / "run", config)
    warnings = []
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with folder.locked(), assembled(config, folder, policy=forced(), warn=warnings.append) as parts:
        resource.setrlimit(resource.RLIMIT_FSIZE, (90_000, limit[1]))
        try:
            parts.records.checkpoint(parts.state, parts.learner, config, force=True)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limit)
            signal.signal(signal.SIGXFSZ, handler)
        assert not list(folder.checkpoints.iterdir())
        assert train(parts)
    assert "checkpoint of step 0 can't be written" in warnings[0]
    assert "a kill now loses the whole run: free space" in warnings[0]
    assert warnings[1:] == ["the checkpoint of step 1 is written: nothing is at risk now"]
    assert [line["step"] for line in lines(folder.metrics)] == [0, 1, 2]


def test_a_damaged_checkpoint_is_no_sound_one(forced, words, tmp_path):
    config = resolve("tiny", overrides=words(tmp_path / "run", steps=2))
    folder, _, parts = run(config, forced())
    checkpoints = parts.records.checkpoints
    assert checkpoints.newest_sound() == checkpoints.steps()[-1] == 2
    with (checkpoints.path(2) / "weights.safetensors").open("r+b") as file:
        file.seek(200)
        file.write(b"x")
    assert checkpoints.newest_sound() == checkpoints.steps()[0]
