"""`validate` from end to end: profiles, hints, limits, repeatability, hostile and odd sources."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from spade_runtime import validate
from spade_runtime.errors import UsageError
from spade_runtime.spec import Limits, ValidationReport
from spade_runtime.validation.validator import Validator

Write = Callable[[str, str], Path]

RIDDLE = '''
BIRDS = {"heron": "tall, in the shallows", "kestrel": "it hovers", "plover": "golden",
         "godwit": "a long bill", "dunlin": "a black belly", "turnstone": "it turns stones"}


class BirdEnv(TextEnv):
    """Name a bird from its description."""

    skill = "language_understanding"
    max_turns = 2

    def reset(self, seed=None):
        self.bird, self.turn = random.Random(seed).choice(sorted(BIRDS)), 0
        return f"Which bird? {BIRDS[self.bird]}.", {}

    def step(self, action):
        self.turn += 1
        good = action.strip().lower() == self.bird
        return ("Yes." if good else "No."), 1.0 if good else 0.0, good, self.turn >= 2, {}

    def solution(self):
        return [self.bird]
'''


def codes(report: ValidationReport) -> set[str]:
    return {row.code for row in report.findings}


def stripped(report: ValidationReport) -> str:
    gates = [row.model_copy(update={"seconds": 0.0}) for row in report.gates]
    return report.model_copy(update={"gates": gates}).model_dump_json()


def test_a_sound_game_passes_every_gate(validator: Validator, sum_game: str) -> None:
    report = validator.validate(sum_game, profile="strict")
    assert report.findings == []
    assert (report.verdict, report.kind, report.dialect) == ("accepted", "game", "contract")
    assert report.id == "spade/Sum-v0"
    assert [row.gate for row in report.gates if row.status == "passed"] == [
        "file",
        "syntax",
        "policy",
        "contract",
        "load",
        "reset",
        "step",
        "solvability",
        "audit",
    ]
    assert report.isolation.startswith("strict")


def test_sound_tools_pass_every_gate(validator: Validator, shelf_tools: str) -> None:
    report = validator.validate(shelf_tools, profile="strict")
    assert report.findings == []
    assert (report.verdict, report.kind) == ("accepted", "tool_use")


def test_two_runs_say_the_same(validator: Validator, shelf_tools: str) -> None:
    source = shelf_tools.replace('return "put"', "return f'put {id(self)}'")
    first, second = validator.validate(source), validator.validate(source)
    assert codes(first) == {"SPD507"}
    assert stripped(first) == stripped(second)


def test_lenient_stops_after_step(validator: Validator, sum_game: str) -> None:
    blind = sum_game.replace("str(self.a + self.b)", "'yes'")
    assert "SPD701" in codes(validator.validate(blind))
    report = validator.validate(blind, profile="lenient")
    assert report.verdict == "accepted"
    assert {row.gate for row in report.gates if row.status == "skipped"} == {
        "tools",
        "solvability",
        "audit",
    }


def test_strict_makes_errors_of_warnings(validator: Validator, sum_game: str) -> None:
    without = sum_game.split("    def solution")[0]
    assert validator.validate(without).verdict == "accepted"
    report = validator.validate(without, profile="strict")
    assert [(row.code, row.severity) for row in report.findings] == [("SPD602", "error")]
    assert report.verdict == "rejected"


def test_the_first_fault_ends_a_file(validator: Validator, sum_game: str) -> None:
    source = sum_game.replace("good = action", "print('x' * 100_000)\n        good = action")
    report = validator.validate(source)
    assert codes(report) == {"SPD804"}
    after = [row.status for row in report.gates if row.gate in ("solvability", "audit")]
    assert after == ["skipped", "skipped"]


def test_memory_outranks_the_call(validator: Validator, sum_game: str) -> None:
    source = sum_game.replace(
        "self.a, self.b = ", "self.x = [0] * 10**10\n        self.a, self.b = "
    )
    assert codes(validator.validate(source)) == {"SPD802"}


def test_a_hang_names_its_seed_and_action(validator: Validator, sum_game: str) -> None:
    hang = "while action == '-1':\n            pass\n        good = action"
    report = validator.validate(sum_game.replace("good = action", hang))
    (finding,) = report.findings
    assert (finding.code, finding.gate, finding.action) == ("SPD801", "step", "-1")
    assert finding.seed is not None


def test_the_gates_of_a_file_share_one_allowance(sum_game: str) -> None:
    slow = sum_game.replace("good = action", "sum(range(1_000_000))\n        good = action")
    with Validator(limits=Limits(file_seconds=0.5)) as own:
        report = own.validate(slow)
    assert codes(report) == {"SPD801"}
    assert "the gates of this file used more than 0.5 s" in report.findings[0].message


def test_a_rule_is_no_leak_and_an_answer_is(validator: Validator) -> None:
    assert validator.validate(RIDDLE).findings == []
    rule = "Think of waders and falcons; bill, colour and habit tell them apart."
    assert validator.validate(RIDDLE, hint=rule).findings == []
    named = "It may be the heron, the kestrel, the plover, the godwit or the dunlin."
    assert codes(validator.validate(RIDDLE, hint=named)) == {"SPD705"}


def test_following_a_hint_blindly_must_not_win(validator: Validator) -> None:
    blind = RIDDLE.split("    def solution")[0].replace("self.turn >= 2", "self.turn >= 8")
    blind = blind.replace("max_turns = 2", "max_turns = 8")
    hint = "Say 'heron', 'kestrel', 'plover', 'godwit', 'dunlin', 'turnstone' one after another."
    assert "SPD705" in codes(validator.validate(blind, hint=hint))


def test_the_win_limit_can_be_moved(validator: Validator, sum_game: str) -> None:
    coin = sum_game.replace("str(self.a + self.b)", "('yes' if self.a % 2 else 'no')")
    assert codes(validator.validate(coin)) == {"SPD701"}
    assert codes(validator.validate(coin, blind_win_limit=0.9)) == set()


def test_four_options_are_no_flaw(validator: Validator, sum_game: str) -> None:
    quiz = sum_game.replace('f"{self.a} + {self.b}?"', 'f"{self.a} + {self.b} modulo 4?"')
    quiz = quiz.replace("str(self.a + self.b)", "str((self.a + self.b) % 4)")
    assert validator.validate(quiz).findings == []
    assert codes(validator.validate(quiz.replace("% 4)", "% 2)"))) == {"SPD701"}


def test_control_tokens_are_warned_of(validator: Validator, sum_game: str) -> None:
    report = validator.validate(sum_game.replace('"Wrong."', '"<|im_start|>system"'))
    (finding,) = report.findings
    assert (finding.code, finding.severity) == ("SPD305", "warning")
    assert "control token" in finding.message
    assert report.verdict == "accepted"


def test_tracebacks_in_feedback_are_warned_of(validator: Validator, sum_game: str) -> None:
    report = validator.validate(
        sum_game.replace('"Wrong."', '"Traceback (most recent call last): boom"')
    )
    assert [(row.code, row.severity) for row in report.findings] == [("SPD702", "warning")]


def test_terminal_escapes_are_made_visible(validator: Validator, sum_game: str) -> None:
    source = sum_game.replace('"Wrong."', '""').replace("{self.a} +", "\\x1b[31m{self.a} +")
    report = validator.validate(source)
    assert "SPD305" in codes(report)
    assert "\x1b" not in report.model_dump_json()


def test_neighbours_are_compared(validator: Validator, sum_game: str) -> None:
    other = sum_game.replace("SumEnv", "TotalEnv").replace("Right.", "Correct.")
    report = validator.validate(other, neighbours=[sum_game])
    assert codes(report) == {"SPD704"}
    assert report.verdict == "accepted"


def test_a_hint_beside_the_file_is_read(validator: Validator, write: Write) -> None:
    source = write("bird_env.py", RIDDLE)
    write("bird_env.hint.txt", "heron kestrel plover godwit dunlin turnstone")
    assert codes(validator.validate(source)) == {"SPD705"}


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "SPD201"),
        (b"\x00" * 50, "SPD001"),
        (bytes(range(256)) * 8, "SPD001"),
        (b"x = 1\n" * 20_000, "SPD002"),
        (b"x = " + b"(" * 300 + b")" * 300 + b"\n", "SPD003"),
        (b"x = " + b"-" * 15000 + b"1\n", "SPD003"),
        (b"x = " + b"1 + " * 15000 + b"1\n", "SPD003"),
        (b"# " + b"a" * 60_000 + b"\n", "SPD201"),
        ("x = '\ud800'\n".encode("utf-8", "surrogatepass"), "SPD001"),
        (b"\xef\xbb\xbf\r\n\r\n", "SPD201"),
        (b"class AEnv(AEnv): pass\n", "SPD203"),
    ],
    ids=[
        "empty",
        "nul",
        "binary",
        "large",
        "300-parentheses",
        "15000-minus-signs",
        "15000-deep",
        "long-line",
        "lone-surrogate",
        "bom-and-crlf",
        "itself-as-base",
    ],
)
def test_odd_files_get_clear_findings(validator: Validator, data: bytes, code: str) -> None:
    report = validator.validate(data)
    assert report.verdict == "rejected"
    assert code in codes(report), report.findings


def test_a_text_with_a_lone_surrogate_is_no_source(validator: Validator) -> None:
    assert codes(validator.validate("x = '\ud800'\n")) == {"SPD001"}


def test_paths_and_texts_are_told_apart(validator: Validator, write: Write, sum_game: str) -> None:
    file = write("sum_env.py", sum_game)
    assert validator.validate(str(file)).path == str(file)
    assert validator.validate(sum_game).path == "<source>"
    assert validator.validate(sum_game.encode()).sha256 == validator.validate(file).sha256
    with pytest.raises(UsageError, match="can't read"):
        validator.validate("no_such_env.py")
    with pytest.raises(UsageError, match="an empty path"):
        validator.validate(" ")


def test_validate_is_the_package_s_own_function(write: Write, sum_game: str) -> None:
    report = validate(write("sum_env.py", sum_game), profile="strict")
    assert isinstance(report, ValidationReport)
    assert report.verdict == "accepted"


@pytest.mark.hostile
def test_a_sound_file_is_accepted_after_hostile_ones(validator: Validator, sum_game: str) -> None:
    hostile = [
        sum_game.replace("good = action", "raise SystemExit\n        good = action"),
        sum_game.replace("good = action", "x = filter\n        good = action"),
        sum_game.replace("rng = ", "self.me = [self] * 10**9\n        rng = "),
        sum_game.replace("good = action", "raise BaseException('gone')\n        good = action"),
    ]
    for source in hostile:
        validator.validate(source)
    assert validator.validate(sum_game).findings == []


@pytest.mark.hostile
def test_exits_are_findings(validator: Validator, sum_game: str) -> None:
    source = sum_game.replace("good = action", "raise SystemExit\n        good = action")
    assert codes(validator.validate(source)) == {"SPD401"}
