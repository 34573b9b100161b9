"""A run's pool says of each environment how the agent fared in it."""

import json

import pytest

pytest.importorskip("torch")

from spade_envs.pool import Pool  # noqa: E402
from spade_envs.pool_index import Query  # noqa: E402
from spade_train.assemble import assembled  # noqa: E402
from spade_train.loop import train  # noqa: E402
from spade_train.presets import resolve  # noqa: E402
from spade_train.run_folder import RunFolder  # noqa: E402
from spade_train.state import Checkpoints  # noqa: E402

pytestmark = pytest.mark.usefixtures("isolation")
SHARED = {"steps": 3, "regenerate_every": 2, "designer_delay": 2, "environments": 4}


def go(path, words, policy, *, stop_after=None, folder=None):
    """Begin a run, or go on with one; dies without a checkpoint at the end of `stop_after`."""
    config = resolve("tiny", overrides=words(path, **SHARED))
    resumed = folder is not None
    folder = folder or RunFolder.create(path, config)
    with folder.locked(), assembled(config, folder, policy=policy) as run:
        if resumed:
            place, document = Checkpoints(folder.checkpoints).newest()
            folder.cut(document["offsets"], document["state"]["step"])
            run.state.restore(document["state"])
            run.learner.load(place)
        if stop_after is not None:
            run.records.checkpoint = before = Once(run.records.checkpoint, stop_after)
            with pytest.raises(Broken):
                train(run)
            assert before.written
        else:
            train(run)
    return folder


class Broken(Exception):
    """Stands for a kill after a step's records, before its checkpoint."""


class Once:
    def __init__(self, write, stop_after):
        self.write, self.stop_after, self.written = write, stop_after, 0

    def __call__(self, state, *rest, **options):
        if state.step > self.stop_after:
            raise Broken
        self.written += 1
        self.write(state, *rest, **options)


def cards(folder):
    """The files of the pool, and what its index says."""
    pool = Pool(folder.pool)
    files = {p.parent.name: json.loads(p.read_text()) for p in folder.pool.glob("*/*/card.json")}
    # A manifest tells when it was written, which its seal covers.
    return files, [entry._replace(manifest_sha256="") for entry in pool.entries()]


@pytest.fixture(scope="module")
def whole(forced, words, tmp_path_factory):
    return go(tmp_path_factory.mktemp("whole") / "run", words, forced())


def test_the_cards_say_what_the_episodes_say(whole, lines):
    last, first = {}, {}
    for file in sorted(whole.episodes.glob("step-*.jsonl")):
        step = int(file.stem.removeprefix("step-"))
        for episode in lines(file):
            made = int(episode["name"].partition("-")[0])
            last.setdefault((made, episode["sha256"]), []).append(episode | {"at": step})
            first.setdefault(episode["sha256"], set()).add(made)
    files, entries = cards(whole)
    assert files.keys() == first.keys() == {entry.sha256 for entry in entries}
    assert {card["step"] for card in files.values()} >= {2}  # the last pool's too
    for entry in entries:
        card = files[entry.sha256]
        played = last[max(first[entry.sha256]), entry.sha256]
        own = [e for e in played if e["arm"] == "unhinted" and "fault" not in e]
        with_hint = [e for e in played if e["arm"] == "hinted" and "fault" not in e]
        assert card["plays"] == len(own) == entry.plays > 0
        assert card["win_rate"] == entry.win_rate == sum(e["solved"] for e in own) / len(own)
        if with_hint:
            wins = sum(e["solved"] for e in with_hint)
            assert card["win_rate_hinted"] == wins / len(with_hint)
            pairs = [
                h["episode_return"] - u["episode_return"]
                for h in with_hint
                for u in own
                if (h["name"], h["seed"], h["at"]) == (u["name"], u["seed"], u["at"])
            ]
            assert card["regret"] == entry.regret == pytest.approx(sum(pairs) / len(pairs))
        assert card["step"] == max(e["at"] for e in played)
        assert card["policy"] == "forced"


def test_a_band_is_found_by_what_was_measured(whole):
    entries = Pool(whole.pool).entries()
    found = Pool(whole.pool).entries(Query(band=(0.0, 0.2)))
    assert found == [e for e in entries if e.win_rate is not None and e.win_rate <= 0.2]
    assert not Pool(whole.pool).verify()


@pytest.mark.parametrize("stop_after", [1, 2])
def test_a_killed_runs_cards_end_like_the_unbroken_ones(whole, forced, words, tmp_path, stop_after):
    broken = go(tmp_path / "run", words, forced(), stop_after=stop_after)
    broken = go(tmp_path / "run", words, forced(), folder=broken)
    assert cards(broken) == cards(whole)


def test_an_environment_that_was_taken_out_of_the_pool_is_no_fault(whole, tmp_path):
    from spade_train.pool_cards import write_cards
    from spade_train.population import Design

    gone = Design(0, 0, "optimization", "game", sha256="ab" * 32, solved=[True, False])
    write_cards(tmp_path / "pool", [gone], [], pairing="paired", policy="p", step=0)
    assert Pool(tmp_path / "pool").entries() == []
