"""Texts are made safe, findings become verdicts, reports are printed."""

from __future__ import annotations

import pytest

from spade_runtime.spec import Finding, ValidationReport
from spade_runtime.validation.output import Tally, github_lines, text_lines
from spade_runtime.validation.report import Findings, Identity, assemble, status_of
from spade_runtime.validation.text import parting, steady, visible


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("plain text, größer, 中文", "plain text, größer, 中文"),
        ("a\nb\tc\rd", "a\\nb\\tc\\rd"),
        ("\x1b[2J\x07\x00\x9b", "\\x1b[2J\\x07\\x00\\x9b"),
        ("left\u202eright\u2066\ufeff", "left\\u202eright\\u2066\\ufeff"),
        ("half \ud83d pair", "half \\ud83d pair"),
        ("\U000e0041tag", "\\U000e0041tag"),
        ("::set-output name=x::y", "\\x3a:set-output name=x\\x3a:y"),
        ("x ##[error]boo", "x \\x23#[error]boo"),
        ("%0A::warning::", "\\x250A\\x3a:warning::"),
        ("slice[::2] and 100%", "slice[::2] and 100%"),
    ],
)
def test_visible(text: str, seen: str) -> None:
    assert visible(text) == seen


def test_visible_cuts_long_texts() -> None:
    assert visible("a" * 1_000_000, 10) == "a" * 10 + "… (999990 more characters)"


def test_parting_does_not_show_what_differs() -> None:
    assert parting("id 1234 x", "id 1299 x") == "is another after 'id '"
    assert parting("abc", "xyz") == "is another from its beginning on"
    assert steady("at 0x7f00deadbeef!") == "at 0x...!"


def _report(findings: Findings) -> ValidationReport:
    return assemble(
        path="envs/a.py",
        sha256="0" * 64,
        identity=Identity("spade/A-v0", "game", "contract"),
        findings=findings,
        gates=[],
        isolation="strict",
    )


def test_warnings_accept_and_errors_reject() -> None:
    findings = Findings("standard")
    findings.add("SPD602", "no solution", "solvability")
    assert _report(findings).verdict == "accepted"
    findings.add("SPD401", "raised", "step")
    assert _report(findings).verdict == "rejected"


def test_profile_decides_the_severity() -> None:
    findings = Findings("strict")
    findings.add("SPD602", "no solution", "solvability")
    assert findings.rows[0].severity == "error"
    assert findings.failed_in("solvability")


def test_run_time_codes_are_reported_once_and_static_ones_by_place() -> None:
    findings = Findings("standard")
    for line in (3, 3, 7):
        findings.add("SPD102", "eval", "policy", line=line)
    for seed in (1, 2):
        findings.add("SPD303", "raised", "reset", seed=seed)
    assert [(row.code, row.line, row.seed) for row in findings.rows] == [
        ("SPD102", 3, None),
        ("SPD102", 7, None),
        ("SPD303", None, 1),
    ]


def test_static_findings_are_bounded() -> None:
    findings = Findings("standard")
    for line in range(1000):
        findings.add("SPD103", "dunder", "policy", line=line)
    assert len(findings.rows) == 20


def test_order_is_by_gate_code_and_place() -> None:
    findings = Findings("standard")
    findings.add("SPD701", "blind", "audit")
    findings.add("SPD303", "raised", "reset")
    findings.add("SPD102", "eval", "policy", line=9)
    findings.add("SPD101", "import", "policy", line=12)
    assert [row.code for row in _report(findings).findings] == [
        "SPD101",
        "SPD102",
        "SPD303",
        "SPD701",
    ]


def test_faults_are_told_apart() -> None:
    findings = Findings("standard")
    findings.add("SPD802", "memory", "reset")
    assert findings.faulted
    assert status_of("reset", findings, ran=True) == "failed"
    assert status_of("step", findings, ran=False) == "skipped"


def test_finding_texts_are_visible_in_every_output() -> None:
    findings = Findings("standard")
    findings.add("SPD402", "got \x1b[31m\n::error::x", "step", action="\x1b]0;t\x07", seed=4)
    report = _report(findings)
    lines = [*text_lines(report), *github_lines(report), report.model_dump_json()]
    for line in lines:
        assert "\x1b" not in line
        assert "\n" not in line
    assert not any(line.lstrip().startswith("::error::") for line in lines)


def test_github_annotations_escape_their_properties() -> None:
    report = ValidationReport(
        path="a,b:c.py",
        verdict="rejected",
        isolation="strict",
        findings=[
            Finding(
                code="SPD003", severity="error", message="50% off", gate="syntax", line=2, column=5
            )
        ],
    )
    assert github_lines(report) == [
        "::error file=a%2Cb%3Ac.py,line=2,col=5,title=SPD003::50%25 off"
    ]


def test_text_says_verdict_place_and_message() -> None:
    findings = Findings("standard")
    findings.add("SPD401", "step raised", "step", line=7, seed=3, action="go")
    assert text_lines(_report(findings)) == [
        "envs/a.py: rejected (contract game)",
        "  SPD401 error: step raised (line 7, seed 3, action 'go')",
    ]


def test_tally_counts_and_knows_the_exit_code() -> None:
    tally = Tally()
    assert tally.exit_code == 0
    accepted = _report(Findings("standard"))
    tally.add(accepted)
    assert tally.exit_code == 0
    rejected = Findings("standard")
    rejected.add("SPD401", "raised", "step")
    tally.add(_report(rejected))
    assert tally.exit_code == 1
    assert tally.lines() == [
        "2 files: 1 accepted, 1 rejected",
        "  1  SPD401  step or close raises",
    ]
    tally.failed(2)
    assert tally.exit_code == 2
    tally.failed(3)
    assert tally.exit_code == 3
    assert tally.lines()[0].endswith("2 without a verdict")
