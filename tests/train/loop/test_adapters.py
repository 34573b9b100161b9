"""A run that trains LoRA adapters beside frozen weights, in one process and in several."""

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("peft")

from spade_train.assemble import assembled  # noqa: E402
from spade_train.learners.adapters import WEIGHTS  # noqa: E402
from spade_train.loop import train  # noqa: E402
from spade_train.presets import resolve  # noqa: E402
from spade_train.run_folder import RunFolder  # noqa: E402
from spade_train.state import Checkpoints  # noqa: E402

pytestmark = pytest.mark.usefixtures("isolation")


def go(config, policy, *, stop_after=None, folder=None):
    """Begin a run, or go on with one; returns its folder and its weights."""
    resumed = folder is not None
    folder = folder or RunFolder.create(Path(config.run_dir), config)
    done = []

    class Watcher:
        def phase(self, name):
            pass

        def step_done(self, line):
            done.append(line)

    stop = (lambda: len(done) >= stop_after) if stop_after else (lambda: False)
    with (
        folder.locked(),
        assembled(config, folder, policy=policy, watcher=Watcher(), should_stop=stop) as run,
    ):
        if resumed:
            place, document = Checkpoints(folder.checkpoints).newest()
            folder.cut(document["offsets"], document["state"]["step"])
            run.state.restore(document["state"])
            run.learner.load(place)
        train(run)
        return folder, {n: p.detach().clone() for n, p in run.learner.model.named_parameters()}


@pytest.mark.parametrize("workers", [1, 2])
def test_only_adapters_change_and_a_resumed_run_equals_the_unbroken_one(
    forced, words, tmp_path, lines, timeless, workers
):
    def config(name):
        changes = {"steps": 2, "lora_rank": 4, "kl_coefficient": 0.01, "workers": workers}
        return resolve("tiny", overrides=words(tmp_path / name, **changes))

    start = {n: p.detach().clone() for n, p in forced().model.named_parameters()}
    whole, expected = go(config("whole"), forced())
    frozen = {n: p for n, p in expected.items() if "lora_" not in n}
    assert len(frozen) == len(start)
    for name, value in frozen.items():
        own = name.removeprefix("base_model.model.").replace(".base_layer", "")
        assert torch.equal(value, start[own])
    assert any(bool(value.any()) for n, value in expected.items() if "lora_B" in n)
    names = {p.name for p in Checkpoints(whole.checkpoints).newest()[0].iterdir()}
    assert {WEIGHTS, "adapter_config.json", "optimizer.pt", "state.json"} <= names

    broken, _ = go(config("broken"), forced(), stop_after=1)
    broken, found = go(config("broken"), forced(), folder=broken)
    assert all(torch.equal(expected[name], found[name]) for name in expected)
    ours, theirs = ([timeless(line) for line in lines(f.metrics)] for f in (whole, broken))
    assert ours == theirs
