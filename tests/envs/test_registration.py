import json
import pickle
import subprocess
import sys
from pathlib import Path

import gymnasium
import pytest

import spade_envs
from spade_envs import suite
from spade_envs.manifest import source_hash
from spade_envs.pool import Pool
from spade_envs.registration import registry
from spade_runtime.errors import InvalidEnvironment, UsageError
from spade_runtime.spec import EnvSpec

SUM = '''
class {name}Env(TextEnv):
    """Add two numbers that the first line names."""

    skill = "mathematical_reasoning"
    max_turns = 2

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.a, self.b = rng.randint(100, 999), rng.randint(100, 999)
        return f"{number}: {{self.a}} + {{self.b}}?", {{}}

    def step(self, action):
        right = action.strip() == str(self.a + self.b)
        return ("Right." if right else "No."), float(right), True, False, {{}}

    def solution(self):
        return [str(self.a + self.b)]
'''


def text_of(name="Plus", number=0):
    return SUM.format(name=name, number=number)


@pytest.fixture(autouse=True)
def clean_registry(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    before = dict(registry)
    yield
    registry.clear()
    registry.update(before)


def fill(folder, count):
    """A pool of tiny environments, not validated: registration reads the index only."""
    pool = Pool(folder, create=True)
    rows = []
    for number in range(count):
        text = text_of(f"Many{number}", number)
        spec = EnvSpec(
            id=f"spade/Many{number}-v0",
            sha256=source_hash(text),
            kind="game",
            title="Add",
            skill="mathematical_reasoning",
        )
        rows.append((text, spec, None))
    pool.add_many(rows)
    return pool


def run(code):
    found = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True
    )
    assert found.returncode == 0, found.stderr
    return found.stdout


def test_a_fresh_process_makes_suite_environments_after_the_import_alone():
    assert "task" in run(
        "import spade_envs, gymnasium as gym; e = gym.make('spade/RollingDie-v0');"
        "o, i = e.reset(seed=7); r = e.step('x'); e.close(); print('task', len(r))"
    )


def test_a_fresh_process_that_imported_nothing_makes_them_by_prefix():
    code = "import gymnasium as gym; e = gym.make('spade_envs:spade/RollingDie-v0')\n"
    assert "die" in run(code + "print(e.reset(seed=7)[0]); e.close()")


def test_the_import_reads_no_source_and_brings_no_heavy_package():
    code = (
        "import sys, spade_envs\n"
        "heavy = {'torch', 'transformers', 'trl', 'pydantic', 'RestrictedPython'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    assert run(code).strip() == "[]"


def test_the_suite_is_registered_under_the_ids_that_its_sources_have():
    from spade_runtime.contract import read

    for name, path in suite.paths().items():
        reading = read(path.read_text("utf-8"))
        assert reading.class_name == name
        assert reading.version == 0
        assert spade_envs.registration.suite_id(name) in registry
    assert len(suite.names()) >= 24


def test_a_specification_survives_json_and_pickle():
    env = gymnasium.make("spade/RollingDie-v0")
    for spec in (
        type(env.spec).from_json(env.spec.to_json()),
        pickle.loads(pickle.dumps(env.spec)),
        pickle.loads(pickle.dumps(gymnasium.spec("spade/RollingDie-v0"))),
    ):
        again = spec.make()
        assert again.reset(seed=3)[0] == env.reset(seed=3)[0]
        again.close()
    env.close()
    parsed = json.loads(gymnasium.spec("spade/RollingDie-v0").to_json())
    assert parsed["kwargs"] == {"source": "suite:RollingDieEnv"}
    text = gymnasium.spec("spade/RollingDie-v0").to_json()
    made = gymnasium.envs.registration.EnvSpec.from_json(text)
    assert made == gymnasium.spec("spade/RollingDie-v0")


@pytest.mark.parametrize("form", ["path", "name", "text"])
def test_register_validates_and_gives_the_manifest(tmp_path, form):
    path = tmp_path / "plus.py"
    path.write_text(text_of())
    source = {"path": path, "name": str(path), "text": text_of()}[form]
    spec = spade_envs.register(source)
    assert spec.id == "spade/Plus-v0"
    assert spec.validation.verdict == "accepted"
    assert spec.sha256 == source_hash(text_of())
    env = gymnasium.make(spec.id)
    assert env.reset(seed=1)[0].startswith("0: ")
    assert type(env.spec).from_json(env.spec.to_json()).kwargs == env.spec.kwargs
    env.close()
    assert spade_envs.register(source).id == spec.id
    spade_envs.unregister(spec.id)
    with pytest.raises(gymnasium.error.NameNotFound):
        gymnasium.make(spec.id)


def test_the_level_of_isolation_is_kept_for_the_making():
    spec = spade_envs.register(text_of(), level="best_effort")
    env = gymnasium.make(spec.id)
    assert env.spec.kwargs == {"source": text_of(), "level": "best_effort"}
    env.reset(seed=1)
    env.close()
    assert spade_envs.register(text_of()).id == spec.id
    assert gymnasium.spec(spec.id).kwargs == {"source": text_of()}
    spade_envs.unregister(spec.id)


def test_register_into_a_pool_keeps_the_source_and_the_hint(tmp_path):
    path = tmp_path / "plus.py"
    path.write_text(text_of())
    (tmp_path / "plus.hint.txt").write_text("Add the hundreds first.\n")
    spec = spade_envs.register(path, pool=tmp_path / "pool")
    path.unlink()
    assert spec.hint == "Add the hundreds first."
    env = gymnasium.make(spec.id)
    assert env.reset(seed=1, options={"hint": True})[0].endswith("Hint: Add the hundreds first.")
    env.close()
    spade_envs.unregister(spec.id)
    assert spade_envs.register(spec, pool=tmp_path / "pool").id == spec.id
    with pytest.raises(UsageError, match="has no source in it"):
        spade_envs.register(spec)


def test_a_rejected_source_is_not_registered(tmp_path):
    path = tmp_path / "bad.py"
    path.write_text(text_of().replace("float(right)", "9.0"))
    with pytest.raises(InvalidEnvironment, match="SPD403") as caught:
        spade_envs.register(path, pool=tmp_path / "pool")
    assert caught.value.findings[0].code == "SPD403"
    assert "spade/Plus-v0" not in registry
    assert not (tmp_path / "pool").exists()


def test_a_rejection_says_its_place_once(tmp_path):
    path = tmp_path / "bad.py"
    path.write_text(text_of().replace("float(right)", "1 / 0"))
    with pytest.raises(InvalidEnvironment, match="SPD401") as caught:
        spade_envs.register(path)
    (line,) = [row for row in str(caught.value).splitlines() if "SPD401:" in row]
    assert line.count("(line ") == 1


@pytest.mark.parametrize(
    ("source", "message"),
    [("missing.py", "can't be read"), (7, "takes a path, a source text or an EnvSpec, not an int")],
)
def test_what_can_not_be_registered(source, message):
    with pytest.raises(UsageError, match=message):
        spade_envs.register(source)


def test_a_second_source_of_an_id_gets_the_hash_with_a_warning():
    first = spade_envs.register(text_of(number=1))
    with pytest.warns(UserWarning, match="is held by another source"):
        second = spade_envs.register(text_of(number=2))
    assert second.id == f"spade/Plus.{second.sha256[:8]}-v0"
    for spec, start in ((first, "1: "), (second, "2: ")):
        env = gymnasium.make(spec.id)
        assert env.reset(seed=1)[0].startswith(start)
        env.close()


def test_a_changed_file_is_refused(tmp_path):
    path = tmp_path / "plus.py"
    path.write_text(text_of())
    spec = spade_envs.register(path)
    path.write_text(text_of(number=5))
    env = gymnasium.make(spec.id)
    with pytest.raises(InvalidEnvironment, match="was changed since it was registered"):
        env.reset(seed=1)


def test_a_whole_pool_is_registered_from_its_index(tmp_path):
    pool = fill(tmp_path / "pool", 40)
    ids = spade_envs.register_pool(tmp_path / "pool")
    assert len(ids) == 40
    assert spade_envs.register_pool(tmp_path / "pool") == ids
    env = gymnasium.make("spade/Many7-v0")
    assert env.reset(seed=1)[0].startswith("7: ")
    env.close()
    sha256 = gymnasium.spec("spade/Many8-v0").kwargs["sha256"]
    file = pool.path(sha256) / "env.py"
    file.write_text(file.read_text().replace("8: ", "9: "))
    env = gymnasium.make("spade/Many8-v0")
    with pytest.raises(InvalidEnvironment, match="was changed"):
        env.reset(seed=1)


def test_ids_that_another_source_holds_move_aside_with_one_warning(tmp_path):
    spade_envs.register(text_of("Many1", 99))
    spade_envs.register(text_of("Many2", 99))
    fill(tmp_path / "pool", 4)
    with pytest.warns(UserWarning, match="2 ids are held by other sources"):
        ids = spade_envs.register_pool(tmp_path / "pool")
    assert sum("." in name for name in ids) == 2
    assert gymnasium.make("spade/Many1-v0").reset(seed=1)[0].startswith("99: ")


def test_a_copy_of_the_suite_in_a_pool_is_no_other_source(tmp_path):
    pool, spec = Pool(tmp_path / "pool", create=True), suite.specs()["StampDrawerEnv"]
    pool.add(suite.paths()["StampDrawerEnv"].read_text(), spec)
    assert spade_envs.register_pool(tmp_path / "pool") == [spec.id]
    assert gymnasium.spec(spec.id).kwargs == {"source": "suite:StampDrawerEnv"}


def test_there_is_no_pool(tmp_path):
    with pytest.raises(UsageError, match="there is nothing at"):
        spade_envs.register_pool(tmp_path / "none")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("spade/RolingDie-v0", "did you mean 'spade/RollingDie-v0'"),
        ("CartPole-v1", "no id of ours"),
        ("spade/a/b-v0", "no id of ours"),
        ("spade/Qqqqqq-v0", "registered\\(\\) lists the ids"),
    ],
)
def test_unregister_says_what_was_meant_and_takes_nothing_out(name, message):
    before = set(registry)
    with pytest.raises(UsageError, match=message):
        spade_envs.unregister("spade/RollingDie-v0", name)
    assert set(registry) == before


def test_gymnasium_suggests_and_knows_versions():
    with pytest.raises(gymnasium.error.NameNotFound, match="Did you mean: `RollingDie`"):
        gymnasium.make("spade/RolingDie-v0")
    with pytest.raises(gymnasium.error.VersionNotFound):
        gymnasium.make("spade/RollingDie-v7")
    with pytest.raises(gymnasium.error.Error, match="[Mm]alformed"):
        gymnasium.make("spade/games/RollingDie-v0")


def test_references_that_name_nothing():
    from spade_envs.references import resolve

    with pytest.raises(UsageError, match="did you mean 'RollingDieEnv'"):
        resolve("suite:RolingDieEnv")
    with pytest.raises(UsageError, match="name one of source, path and pool, not none"):
        resolve()
    with pytest.raises(UsageError, match="not source, path"):
        resolve("x\n", path="y")
    with pytest.raises(UsageError, match="needs the sha256"):
        resolve(pool="somewhere")
    with pytest.raises(UsageError, match="can't be read"):
        resolve(path="/nowhere/at/all.py")


def test_public_names_are_loaded_when_used():
    assert spade_envs.SpadeEnv is not None
    assert dir(spade_envs) == sorted(spade_envs.__all__)
    for name in dir(spade_envs):
        assert getattr(spade_envs, name).__module__.startswith("spade_envs.")
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        spade_envs.nothing  # noqa: B018
    assert Path(spade_envs.__file__).name == "__init__.py"
