"""The commands that play, as a person types them."""

from __future__ import annotations

import hashlib
import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from spade_envs import suite
from spade_envs.commands.new import class_stem, file_name
from spade_envs.episodes import read_episodes
from spade_envs.pool import Pool
from spade_runtime.errors import UsageError
from spade_runtime.validation import validate

Spade = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize("kind", ["game", "tool_use"])
def test_new_writes_a_scaffold_that_the_strict_profile_accepts(
    spade: Spade, tmp_path: Path, kind: str
) -> None:
    code, out, _ = spade("new", "tide_table", "--kind", kind, "--title", "Read the tides")
    assert code == 0 and out.splitlines()[0] == "tide_table.py"
    file = tmp_path / "tide_table.py"
    assert "class TideTableEnv(" in file.read_text() and '"""Read the tides."""' in file.read_text()
    report = validate(file, profile="strict")
    assert [(row.code, row.message) for row in report.findings] == []
    assert report.verdict == "accepted"


def test_new_does_not_write_over_a_file(spade: Spade, tmp_path: Path) -> None:
    (tmp_path / "tide_table.py").write_text("mine")
    code, _, err = spade("new", "TideTable")
    assert code == 2 and "is there already" in err
    assert (tmp_path / "tide_table.py").read_text() == "mine"
    assert spade("new", "TideTable", "--force")[0] == 0


@pytest.mark.parametrize("name", ["", "9lives", "a/b", "Env", "x y\nz!", "../up"])
def test_new_refuses_names_that_make_no_class(name: str) -> None:
    with pytest.raises(UsageError, match="makes no class name"):
        class_stem(name)


def test_names_of_files_and_classes_agree_with_the_suite() -> None:
    for name, path in suite.paths().items():
        assert file_name(class_stem(name)) == path.name


def test_new_refuses_a_title_that_would_break_the_source(spade: Spade) -> None:
    assert spade("new", "x", "--title", 'a """ b')[0] == 2


def test_list_shows_the_suite_and_filters(spade: Spade) -> None:
    code, out, _ = spade("list")
    assert code == 0 and len(out.splitlines()) == 1 + len(suite.names())
    assert "spade/RollingDie-v0" in out
    rows = json.loads(spade("list", "--kind", "tool_use", "--json")[1])
    assert len(rows) == 6 and {row["kind"] for row in rows} == {"tool_use"}
    assert len(spade("list", "--skill", "optimization")[1].splitlines()) == 4
    assert "spatial_reasoning" in spade("list", "--skills")[1]


def test_list_suggests_a_skill(spade: Spade) -> None:
    code, _, err = spade("list", "--skill", "optimisation")
    assert code == 2 and "did you mean 'optimization'?" in err


def test_show_gives_a_card_with_its_tools(spade: Spade) -> None:
    code, out, _ = spade("show", "spade/MapRoom-v0")
    assert code == 0
    assert out.startswith("Answer travellers' questions")
    assert "road_km(start, end)" in out and "tool_selection" in out


def test_show_gives_source_json_and_a_first_observation(spade: Spade) -> None:
    path = suite.paths()["StampDrawerEnv"]
    assert spade("show", "StampDrawer", "--source")[1].rstrip() == path.read_text().rstrip()
    body = json.loads(spade("show", "StampDrawerEnv", "--json")[1])
    assert body["id"] == "spade/StampDrawer-v0"
    assert "A drawer holds plenty of stamps" in spade("show", str(path), "--seed", 3)[1]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("RolingDie", "did you mean 'spade/RollingDie-v0'?"),
        ("spade/RollingDie-v3", "there is no version 3; there is 'spade/RollingDie-v0'"),
        ("spade//x", "is no id; one looks like spade/RollingDie-v0"),
        ("Zzzz", "`spade list` shows them"),
        ("none.py", "there is no file none.py"),
        (".", "is a directory"),
    ],
)
@pytest.mark.parametrize("command", ["show", "play"])
def test_unknown_names_are_answered_with_the_next_step(
    spade: Spade, command: str, name: str, said: str
) -> None:
    code, out, err = spade(command, name)
    assert code == 2 and out == "" and said in err


def test_play_watches_a_policy(spade: Spade) -> None:
    code, out, _ = spade("play", "RollingDie", "--policy", "solution", "--seed", 3)
    assert code == 0 and "Solved in 5 turns" in out


def test_play_takes_a_person_s_lines_from_a_pipe(
    spade: Spade, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = iter([":tools", "", "fly away", "line_km Corvo Brill", ":quit"])

    def answer(_: str = "") -> str:
        return next(lines)

    monkeypatch.setattr("builtins.input", answer)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False, raising=False)
    code, out, _ = spade("play", "MapRoom", "--seed", 7, "--record", "mine.jsonl")
    assert code == 0 and "there is no tool 'fly'" in out and "Left after 1 turn." in out
    assert spade("replay", "mine.jsonl")[1] == "1 of 1 episodes are the same bit for bit\n"


def test_run_prints_intervals_and_writes_episodes(spade: Spade, tmp_path: Path) -> None:
    code, out, _ = spade("run", "StampDrawer", "LampRound", "--model", "solution", "--episodes", 4)
    assert code == 0
    assert "100.0 % [51.0, 100.0]" in out
    assert out.splitlines()[-1] == "episodes: runs/episodes/solution-1.jsonl"
    assert len((tmp_path / "runs/episodes/solution-1.jsonl").read_text().splitlines()) == 8
    out = spade("run", "StampDrawer", "--model", "random", "--episodes", 2, "--json")[1]
    assert json.loads(out)["results"][0]["solved"]["value"] == 0.0


FAULTY = '''
class FaultyEnv(TextEnv):
    """Fail in some episodes."""

    skill = "optimization"
    max_turns = 3

    def reset(self, seed=None):
        self.seed = seed
        if seed % 4 == 1:
            raise ValueError("unlucky" + chr(27))
        return f"task {seed}", {}

    def step(self, action):
        if self.seed % 4 == 3:
            raise KeyError("lost")
        return "Yes.", 1.0, True, False, {}
'''


def test_run_says_which_faults_there_were_and_where_to_look(spade: Spade, tmp_path: Path) -> None:
    (tmp_path / "f.py").write_text(FAULTY)
    words = ("run", "f.py", "StampDrawer", "--model", "text:x", "--episodes", 12)
    code, out, _ = spade(*words, "--to", "e.jsonl")
    assert code == 1
    faults = [one for one in read_episodes(Path("e.jsonl")) if one.fault is not None]
    first = {one.fault.code: one.seed for one in reversed(faults) if one.fault}
    assert set(first) == {"SPD303", "SPD401"}
    assert f"spade/Faulty-v0: {len(faults)} of 12 episodes ended by its own fault\n" in out
    assert f", first with seed {first['SPD303']}: " in out and "unlucky\\x1b" in out
    assert f", first with seed {first['SPD401']}: " in out and "lost" in out
    assert "look closer with: spade validate f.py, spade explain SPD" in out
    assert "StampDrawer-v0: " not in out
    code, out, _ = spade(*words, "--json")
    told = json.loads(out)["results"]
    assert code == 1 and told[0]["first_fault"]["seed"] == faults[0].seed
    assert told[0]["faults"] == len(faults) and told[1]["first_fault"] is None


@pytest.mark.parametrize("command", [("run", "--episodes", 2, "--model"), ("play", "--policy")])
def test_a_source_that_can_not_be_opened_is_named(
    spade: Spade, tmp_path: Path, command: tuple[object, ...]
) -> None:
    text = FAULTY.replace("max_turns = 3", "max_turns = 3\n    x = 1 / 0")
    (tmp_path / "bad.py").write_text(text)
    code, _, err = spade(*command, "random", "bad.py")
    assert code == 1 and "bad.py can't be played: SPD301: load raised ZeroDivisionError" in err
    assert "look closer with: spade validate bad.py" in err


def test_run_tells_two_sources_of_one_id_apart_and_plays_each_once(
    spade: Spade, tmp_path: Path
) -> None:
    text = suite.paths()["StampDrawerEnv"].read_text()
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text(f"# {name}\n{text}")
    words = ("run", "a.py", "b.py", tmp_path / "a.py", "--model", "text:x", "--episodes", 2)
    code, out, _ = spade(*words, "--json", "--to", "e.jsonl")
    rows = json.loads(out)["results"]
    digest = hashlib.sha256((tmp_path / "b.py").read_bytes()).hexdigest()
    assert [row["id"] for row in rows] == [
        "spade/StampDrawer-v0",
        f"spade/StampDrawer.{digest[:8]}-v0",
    ]
    assert code == 0 and rows[1]["sha256"] == digest
    assert len(list(read_episodes(Path("e.jsonl")))) == 4


def test_a_server_that_is_not_there_is_a_fault_and_no_lack_of_isolation(spade: Spade) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    code, _, err = spade("run", "StampDrawer", "--model", url, "--model-name", "m", "--timeout", 1)
    assert code == 1 and "Check that the server runs" in err


def test_run_goes_on_with_a_file(spade: Spade, tmp_path: Path) -> None:
    words = ("run", "TrufflePatch", "--model", "random", "--to", "e.jsonl")
    whole = spade(*words, "--episodes", 6)[1]
    lines = (tmp_path / "e.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "e.jsonl").write_text("".join(lines[:2]) + lines[2][:50])  # killed while writing
    code, _, err = spade(*words, "--episodes", 6)
    assert code == 2 and "go on with it by --resume" in err
    _, out, err = spade(*words, "--episodes", 6, "--resume")
    assert out == whole and "removed a last line that was cut off" in err
    assert sorted((tmp_path / "e.jsonl").read_text().splitlines()) == sorted(
        line.rstrip("\n") for line in lines
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run", "--model", "random"), "name an environment, or all of the suite"),
        (("run", "StampDrawer", "--model", "randm"), "did you mean 'random'"),
        (("run", "StampDrawer", "--model", "./none"), "is a folder, and this is not there"),
        (("run", "StampDrawer", "--model", "me/mine"), "a model of a model hub is hf:me/mine"),
        (("run", "StampDrawer", "--model", "random", "--top-p", 0), "--top-p above 0"),
        (("run", "StampDrawer", "--model", "random", "--episodes", 0), "whole number from 1"),
        (("play", "StampDrawer", "--seed", -1), "a seed is a whole number from 0 to 2147483647,"),
        (("replay", "none.jsonl"), "can't read episodes from none.jsonl"),
        (("list", "--pool", "nowhere"), "there is nothing at nowhere"),
    ],
)
def test_a_person_s_mistake_costs_one_message(
    spade: Spade, words: tuple[object, ...], said: str
) -> None:
    code, _, err = spade(*words)
    assert code == 2 and said in err and "Traceback" not in err


def test_nothing_to_replay_or_to_import_is_said_and_leaves_nothing(
    spade: Spade, tmp_path: Path
) -> None:
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "bare").mkdir()
    code, _, err = spade("replay", "empty.jsonl")
    assert code == 2 and "holds no episodes" in err
    code, _, err = spade("pool", "import", "bare", "pool")
    assert code == 2 and "holds no Python files" in err
    assert not (tmp_path / "pool").exists()


def test_replay_finds_a_changed_source_and_a_changed_episode(spade: Spade, tmp_path: Path) -> None:
    source = tmp_path / "mine.py"
    source.write_text(suite.paths()["BrassCalculatorEnv"].read_text() + "\n# mine\n")
    assert spade("run", source, "--model", "random", "--episodes", 3, "--to", "e.jsonl")[0] == 0
    code, _, err = spade("replay", "e.jsonl")
    assert code == 2 and "name it with --source FILE" in err
    assert spade("replay", "e.jsonl", "--source", source)[0] == 0
    rows = [json.loads(line) for line in (tmp_path / "e.jsonl").read_text().splitlines()]
    rows[1]["observations"][2] = "another"
    (tmp_path / "e.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, out, _ = spade("replay", "e.jsonl", "--source", source)
    assert code == 1 and "2 of 3 episodes are the same" in out
    assert f"episode 2 (spade/BrassCalculator-v0, seed {rows[1]['seed']}): turn 2" in out


def test_replay_exports(spade: Spade, tmp_path: Path) -> None:
    spade("run", "StampDrawer", "--model", "random", "--episodes", 2, "--to", "e.jsonl")
    assert spade("replay", "e.jsonl", "--export", "chat.jsonl")[1] == "2 episodes in chat.jsonl\n"
    assert len((tmp_path / "chat.jsonl").read_text().splitlines()) == 2


def test_a_pool_is_filled_listed_verified_and_exported(spade: Spade, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    for name in ("StampDrawerEnv", "MapRoomEnv"):
        path = suite.paths()[name]
        (folder / path.name).write_bytes(path.read_bytes())
    (folder / "broken.py").write_text("class BadEnv(TextEnv):\n    pass\n")
    code, out, _ = spade("pool", "import", "mine", "P")
    assert code == 1 and "rejected: mine/broken.py: SPD203" in out
    assert out.splitlines()[-1] == "P: 2 added, 1 rejected"
    assert spade("pool", "import", "mine", "P")[1].splitlines()[-1] == "P: 2 known, 1 rejected"
    assert "spade/MapRoom-v0" in spade("pool", "ls", "P", "--skill", "tool_selection")[1]
    assert spade("pool", "verify", "P")[1] == "P: 2 environments, nothing wrong\n"
    assert "on this machine" in spade("show", "StampDrawer", "--pool", "P")[1]
    assert spade("run", "MapRoom", "--pool", "P", "--model", "solution", "--episodes", 2)[0] == 0
    assert spade("pool", "export", "P", "X")[0] == 0
    assert spade("pool", "import", "X", "Q")[1] == "Q: 2 added\n"
    assert {row.id for row in Pool("P").entries()} == {row.id for row in Pool("Q").entries()}


def test_pool_verify_names_what_is_wrong_and_repairs(spade: Spade, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "stamp.py").write_bytes(suite.paths()["StampDrawerEnv"].read_bytes())
    assert spade("pool", "import", "mine", "P", "--unchecked")[0] == 0
    (tmp_path / "P/.incoming/left").mkdir()
    code, out, _ = spade("pool", "verify", "P")
    assert code == 1 and out.startswith("interrupted: ") and "--repair P" in out
    assert spade("pool", "verify", "P", "--repair")[0] == 0
    assert "not known; check it" in spade("show", "StampDrawer", "--pool", "P")[1]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("pool", "ls", "P"), "there is nothing at P"),
        (("pool", "import", "none", "P"), "there is no folder none"),
        (
            ("pool", "import", suite.paths()["MapRoomEnv"], "P"),
            "map_room.py is a file, and a folder is imported; give the file a folder of its own",
        ),
        (("pool", "ls", "P", "--band", "2..3"), "a range in [0, 1]"),
        (("pool",), "ACTION"),
    ],
)
def test_mistakes_with_pools(spade: Spade, words: tuple[object, ...], said: str) -> None:
    code, _, err = spade(*words)
    assert code == 2 and said in err


def test_hints_come_with_the_suite_and_are_shown_when_asked_for(spade: Spade) -> None:
    assert "hint" in spade("show", "PaperPunch")[1]
    words = ("run", "PaperPunch", "--model", "random", "--episodes", 2, "--to", "e.jsonl")
    assert spade(*words, "--with-hint")[0] == 0
    first = json.loads(Path("e.jsonl").read_text().splitlines()[0])
    hint = suite.specs()["PaperPunchEnv"].hint
    assert hint and first["messages"][0]["content"].endswith(f"\n\nHint: {hint}")
    assert not first["observations"][0].endswith(hint)
    spade("new", "plain")
    code, _, err = spade("run", "plain.py", "--model", "random", "--with-hint", "--to", "x.jsonl")
    assert code == 2 and "comes with no hint" in err


def test_ctrl_c_keeps_what_was_finished_and_says_how_to_go_on(tmp_path: Path) -> None:
    # A shell that starts the tests in the background has them ignore Ctrl-C, and this one too.
    program = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from spade_runtime.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    words = ["run", "TrufflePatch", "--model", "random", "--episodes", "4000", "--to", "e.jsonl"]
    worker = subprocess.Popen(
        [sys.executable, "-c", program, *words, "--instances", "2"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    file = tmp_path / "e.jsonl"
    while not file.exists() or file.read_bytes().count(b"\n") < 4:
        assert worker.poll() is None
        time.sleep(0.02)
    worker.send_signal(signal.SIGINT)
    _, said = worker.communicate(timeout=60)
    assert worker.returncode == 130
    assert "--to e.jsonl --resume" in said and "Traceback" not in said
    assert len(list(read_episodes(file))) >= 4
