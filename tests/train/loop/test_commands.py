"""`spade train`, `resume` and `design` as a person runs them: processes, signals, exit codes."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

pytest.importorskip("torch")

PROGRAM = "import sys; from spade_runtime.cli import main; sys.exit(main())"
SCHEMAS = Path(__file__).parents[3] / "schemas"
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200", "NO_COLOR": "1"}


def spade(*arguments, **options):
    command = [sys.executable, "-c", PROGRAM, *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=300, env=ENVIRONMENT, **options
    )


def start(*arguments):
    command = [sys.executable, "-c", PROGRAM, *map(str, arguments)]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
        start_new_session=True,
    )


@pytest.fixture(scope="session")
def external(words, designer_url):
    """Overrides of a run whose designs come from a URL, so that real ones can be played."""

    def make(run_dir, **changes):
        return words(
            run_dir,
            ablation="external_designer",
            designer_url=designer_url,
            designer_model="m",
            invalid_reward="none",
            **changes,
        )

    return make


@pytest.fixture(scope="session")
def unbroken(isolation, external, lines, timeless, tmp_path_factory):
    """A whole run by the command, its output, and what it wrote."""
    path = tmp_path_factory.mktemp("whole") / "run"
    done = spade("train", "--preset", "tiny", *external(path, steps=5))
    assert done.returncode == 0, done.stderr
    return path, done, contents(path, lines, timeless)


def contents(path, lines, timeless):
    episodes = {p.name: lines(p) for p in sorted((path / "episodes").glob("*.jsonl"))}
    metrics = [timeless(line) for line in lines(path / "metrics.jsonl")]
    return metrics, lines(path / "designs.jsonl"), episodes


def test_a_run_prints_its_tables_and_leaves_a_whole_folder(unbroken):
    path, done, (metrics, designs, episodes) = unbroken
    assert [line["step"] for line in metrics] == list(range(6))
    assert len(episodes) == 5
    assert designs
    assert "acceptance funnel" in done.stdout
    assert "hinted" in done.stdout
    assert done.stdout.strip().endswith("report.html")
    assert f" --pool {path}/pool --model {path}\n" in done.stdout
    assert f"spade pool ls {path}/pool --band 0.2..0.8\n" in done.stdout
    first, second, *_ = done.stderr.splitlines()
    opening = [line for line in (first, second) if "loading the model" in line]
    assert f"spade: {path}: preset tiny, setting games" in opening[0]
    assert "5 steps of 3 environments" in opening[0]
    assert "step 1/5: designing" in done.stderr and "step 2/5: designing" not in done.stderr
    assert "after the last step, " in done.stderr
    assert "Loading weights" not in done.stderr
    assert done.stderr.count("step ") >= 5
    names = {"config.yaml", "metrics.jsonl", "designs.jsonl", "episodes", "pool", "checkpoints"}
    assert names | {"report.html"} <= {p.name for p in path.iterdir()}
    assert "<html" in (path / "report.html").read_text(encoding="utf-8")[:2000].lower()


def test_a_finished_run_says_that_it_is_and_stays_as_it_is(unbroken, lines, timeless, tmp_path):
    path = Path(shutil.copytree(unbroken[0], tmp_path / "run"))
    done = spade("resume", path)
    assert done.returncode == 0, done.stderr
    assert f"spade: {path} is finished: its 5 steps are done" in done.stderr
    assert f"--config {path}/config.yaml model={path} run_dir={path}-more" in done.stdout
    assert "acceptance funnel" not in done.stdout
    assert contents(path, lines, timeless) == unbroken[2]
    (path / "report.html").unlink()
    assert spade("resume", path).stdout.strip().endswith(f"{path}/report.html")
    assert (path / "report.html").is_file()


def test_a_run_trains_on_from_anothers_weights(unbroken, external, tmp_path):
    path, *_ = unbroken
    words = [word for word in external(tmp_path / "more", steps=1) if not word.startswith("model=")]
    done = spade("train", "--config", path / "config.yaml", f"model={path}", *words)
    assert done.returncode == 0, done.stderr
    assert f"model {path}, 1 step of 3 environments" in done.stderr
    played = spade("run", "RollingDie", "--model", tmp_path / "more", "--episodes", 2, cwd=tmp_path)
    assert played.returncode == 0, played.stderr
    assert "Loading weights" not in played.stderr


def test_its_episodes_are_episodes_by_the_schema_and_replay(unbroken, lines):
    import jsonschema_rs

    schema = json.loads((SCHEMAS / "episode.schema.json").read_text(encoding="utf-8"))
    checker = jsonschema_rs.validator_for(schema)
    path, *_ = unbroken
    files = sorted((path / "episodes").glob("step-*.jsonl"))
    assert len(files) == 5
    for file in files:
        for episode in lines(file):
            assert not [error.message for error in checker.iter_errors(episode)]
    done = spade("replay", files[1])
    count = len(lines(files[1]))
    assert count > 0
    assert f"{count} of {count} episodes are the same bit for bit" in done.stdout
    assert done.returncode == 0


def test_what_it_accepted_is_this_machines_verdict_under_the_limit_it_had(unbroken):
    pool = unbroken[0] / "pool"
    manifest = json.loads(next(pool.glob("*/*/env.json")).read_text(encoding="utf-8"))
    card = spade("show", manifest["id"], "--pool", pool).stdout
    limit = yaml.safe_load((unbroken[0] / "config.yaml").read_text())["blind_win_limit"]
    assert limit > 0.25
    said = f"on this machine, with blind_win_limit {limit:g}, where the standard profile has 0.25"
    assert said in card
    assert spade("validate", *pool.glob("*/*/env.py")).returncode == 0
    card = spade("show", manifest["id"], "--pool", pool).stdout
    assert "yes, standard profile, on this machine" in card


def kill_and_resume(path, moment, external, lines, timeless):
    """Kill a run with SIGKILL once it has written `moment` of its lines and a little more."""
    process = start("train", "--preset", "tiny", *external(path, steps=5))
    log = path / "metrics.jsonl"
    deadline = time.monotonic() + 240
    whole, part = divmod(moment, 1)
    while process.poll() is None and time.monotonic() < deadline:
        if log.exists() and log.read_bytes().count(b"\n") >= whole:
            time.sleep(part)
            break
        time.sleep(0.02)
    process.kill()
    process.communicate()
    if not list((path / "checkpoints").glob("step-*")):
        refused = spade("resume", path)
        assert refused.returncode == 2
        assert "no checkpoint" in refused.stderr
        return None
    done = spade("resume", path)
    assert done.returncode == 0, done.stderr
    return contents(path, lines, timeless)


@pytest.mark.parametrize("moment", [0.5, 2.3])
def test_a_killed_run_ends_like_the_unbroken_one(
    unbroken, external, lines, timeless, tmp_path, moment
):
    found = kill_and_resume(tmp_path / "run", moment, external, lines, timeless)
    assert found is None or found == unbroken[2]


@pytest.mark.slow
@pytest.mark.optin
@pytest.mark.skipif(not os.environ.get("SPADE_KILLS"), reason="set SPADE_KILLS=20 for twenty kills")
def test_runs_killed_at_random_points_end_like_the_unbroken_one(
    unbroken, external, lines, timeless, tmp_path
):
    rng = random.Random(20)
    for number in range(int(os.environ["SPADE_KILLS"])):
        moment = rng.uniform(0, 5)
        found = kill_and_resume(tmp_path / f"run{number}", moment, external, lines, timeless)
        assert found is None or found == unbroken[2], f"kill {number} at {moment:.2f}"


@pytest.mark.parametrize(
    ("number", "workers"), [(signal.SIGINT, 1), (signal.SIGINT, 2), (signal.SIGTERM, 2)]
)
def test_a_signal_stops_at_a_steps_end_and_says_how_to_resume(
    isolation, external, lines, tmp_path, number, workers
):
    """Sent to the whole group, as a terminal, `timeout` and schedulers do."""
    path = tmp_path / "run"
    process = start("train", "--preset", "tiny", *external(path, steps=50, workers=workers))
    while not (path / "metrics.jsonl").exists() or not lines(path / "metrics.jsonl"):
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.05)
    os.killpg(process.pid, number)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130, errors
    assert f"spade resume {path}" in errors
    assert "Traceback" not in errors
    steps = [line["step"] for line in lines(path / "metrics.jsonl")]
    assert steps == list(range(len(steps)))
    assert len(steps) < 50


def test_two_runs_in_one_folder_are_refused(isolation, external, lines, tmp_path):
    path = tmp_path / "run"
    process = start("train", "--preset", "tiny", *external(path, steps=50))
    try:
        while not list(path.glob("checkpoints/step-*")):
            assert process.poll() is None, process.communicate()[1]
            time.sleep(0.05)
        again = spade("train", "--preset", "tiny", *external(path))
        assert again.returncode == 2
        assert "exists already" in again.stderr
        other = spade("resume", path)
        assert other.returncode == 2
        assert f"another process (pid {process.pid})" in other.stderr
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["train", "stepz=3"], 2, "did you mean"),
        (["train", "steps=no"], 2, "steps"),
        (["train", "--preset", "huge"], 2, "preset"),
        (["train", "--config", "absent.yaml"], 2, "absent.yaml"),
        (["train", "model=/nowhere"], 2, "no model folder '/nowhere'"),
        (["train", "model=.", "heldout_every=0"], 1, "can't be loaded"),
        (["train", "model=."], 2, "heldout=FOLDER"),
        (["train", "heldout=/nowhere"], 2, "/nowhere holds no environments"),
        (["train", "corpus=[/nowhere.jsonl]"], 2, "/nowhere.jsonl"),
        (["train", "corpus=/nowhere.jsonl"], 2, "/nowhere.jsonl"),
        (["train", "run_dir=/dev/null"], 2, "is no run"),
        (["train", "run_dir=/dev/null/run"], 2, "can't be"),
        (["resume", "nowhere"], 2, "is not a run"),
        (["design", "--n", "0"], 2, "--n is at least 1"),
    ],
)
def test_a_persons_mistakes_are_one_clear_line(isolation, tmp_path, arguments, code, message):
    done = spade(*arguments, cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert message in done.stderr
    assert done.stderr.splitlines()[-1].startswith("spade: error: ")
    assert done.stderr.count("spade: error: ") == 1
    assert "Traceback" not in done.stderr
    assert not [p for p in tmp_path.rglob("*") if p.is_file()], "something half-written stayed"


def test_a_damaged_checkpoint_is_named_and_the_one_before_it_serves(
    unbroken, lines, timeless, tmp_path
):
    path = tmp_path / "run"
    shutil.copytree(unbroken[0], path)
    newest = sorted((path / "checkpoints").iterdir())[-1]
    weights = newest / "weights.safetensors"
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(data)
    done = spade("resume", path)
    assert done.returncode == 2
    assert "is damaged: weights.safetensors has SHA-256" in done.stderr
    assert "delete that folder to go on from step 4" in done.stderr
    shutil.rmtree(newest)
    done = spade("resume", path)
    assert done.returncode == 0, done.stderr
    assert contents(path, lines, timeless) == unbroken[2]


def test_the_designer_alone_leaves_a_pool(isolation, external, lines, tmp_path):
    out = tmp_path / "designs"
    done = spade("design", "--n", "3", "--out", out, *external("unused"))
    assert done.returncode == 0, done.stderr
    assert "acceptance funnel" in done.stdout
    accepted = [d for d in lines(out / "designs.jsonl") if d["verdict"] == "accepted"]
    assert len(accepted) == 3
    assert len(list((out / "pool").glob("*/*/env.py"))) == len({d["sha256"] for d in accepted})


def test_a_dry_run_prints_the_configuration_and_makes_nothing(tmp_path):
    done = spade("train", "--preset", "games-4b", "--dry-run", "steps=7", cwd=tmp_path)
    assert done.returncode == 0
    assert "\nsteps: 7\n" in done.stdout
    assert not list(tmp_path.iterdir())
