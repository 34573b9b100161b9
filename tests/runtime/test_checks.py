"""Claims that no honest child makes: each gives a value of the contract, or a typed fault."""

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spade_runtime import checks
from spade_runtime.errors import (
    EnvFault,
    EnvMemoryExceeded,
    EnvOutputTooLarge,
    EnvRaised,
    EnvViolation,
)
from spade_runtime.sandbox.wire import (
    Bad,
    Raised,
    RawCriterion,
    RawReset,
    RawSolution,
    RawStep,
    RawTool,
)
from spade_runtime.spec import EnvSpec, Limits

LIMITS = Limits()


def spec(kind="game", dialect="contract"):
    return EnvSpec(
        id="spade/Any-v0",
        sha256="0" * 64,
        kind=kind,
        dialect=dialect,
        title="any",
        skill="optimization",
        reward_range=(-10, 10) if dialect == "published" else (-1, 1),
    )


bads = st.builds(Bad, st.text(max_size=8), st.text(max_size=8), st.text(max_size=8))
raiseds = st.builds(
    Raised,
    st.text(max_size=8),
    st.text(max_size=8),
    st.text(max_size=8),
    st.none() | st.integers(),
    st.sampled_from(["", "SPD103", "SPD802", "SPD804", "SPD999", "x"]),
)
texts = st.text(st.characters(codec="utf-8"), max_size=8) | bads
infos = st.binary(max_size=12) | st.sampled_from([b"{}", b'{"a": NaN}', b"[1]", b"{" * 99]) | bads
steps = st.builds(
    RawStep,
    texts,
    st.floats() | st.integers(-3, 3) | bads,
    st.booleans() | bads,
    st.booleans() | bads,
    infos,
)


@given(steps | raiseds | bads)
def test_any_claim_of_a_step_is_a_transition_or_a_fault(raw):
    try:
        step = checks.transition(raw, spec(), LIMITS)
    except EnvFault as fault:
        assert fault.code in {"SPD401", "SPD402", "SPD403", "SPD305", "SPD407"} | {
            "SPD103",
            "SPD802",
            "SPD804",
        }
        return
    assert type(step.observation) is str and step.observation
    assert type(step.reward) is float and -1 <= step.reward <= 1
    assert type(step.terminated) is type(step.truncated) is bool
    assert type(step.info) is dict


@given(
    st.builds(RawReset, texts, infos, st.none() | st.lists(st.text(max_size=3), max_size=7))
    | raiseds
    | bads
)
def test_any_claim_of_a_reset_is_a_beginning_or_a_fault(raw):
    for kind in ("game", "tool_use"):
        try:
            start = checks.beginning(raw, spec(kind), LIMITS)
        except EnvFault as fault:
            assert fault.code.startswith("SPD")
            continue
        assert start.observation
        assert (kind == "game" and start.turns == []) or 3 <= len(start.turns) <= 5


@given(st.builds(RawTool, texts, st.booleans() | bads | raiseds) | raiseds)
def test_any_claim_of_a_tool_is_a_result_or_a_fault(raw):
    try:
        text, done = checks.tool_result(raw, LIMITS)
    except EnvFault as fault:
        assert fault.code in {"SPD503", "SPD505", "SPD305", "SPD103", "SPD802", "SPD804"}
        return
    assert text
    assert type(done) is bool


def test_an_empty_tool_result_is_shown():
    assert checks.tool_result(RawTool("", True), LIMITS) == ("(no output)", True)


@pytest.mark.parametrize(
    ("claimed", "code", "kind"),
    [
        ("", "SPD401", EnvRaised),
        ("SPD103", "SPD103", EnvRaised),
        ("SPD802", "SPD802", EnvMemoryExceeded),
        ("SPD804", "SPD804", EnvOutputTooLarge),
        ("SPD601", "SPD401", EnvRaised),
        ("nonsense", "SPD401", EnvRaised),
    ],
)
def test_only_three_codes_outrank_that_of_the_call(claimed, code, kind):
    fault = checks.raised(Raised("step", "KeyError", "x" * 9999, 3, claimed), "SPD401")
    assert type(fault) is kind
    assert fault.code == code
    assert fault.evidence.line == 3
    assert len(str(fault)) < 600


def test_claims_are_shortened_before_they_are_told():
    long = Bad("t" * 9999, "r" * 9999, "s" * 9999)
    for raw in (RawStep(long, 0.0, False, False, b"{}"), long):
        with pytest.raises(EnvViolation) as caught:
            checks.transition(raw, spec(), LIMITS)
        assert len(str(caught.value)) < 1000
    with pytest.raises(EnvViolation) as caught:
        checks.solution(RawSolution(bad=long), spec())
    assert len(str(caught.value)) < 1500


@pytest.mark.parametrize(("reward", "kept"), [(-1, -1.0), (1, 1.0), (0.5, 0.5), (-1e-300, -1e-300)])
def test_rewards_within_the_range(reward, kept):
    step = checks.transition(RawStep("a", reward, False, False, b"{}"), spec(), LIMITS)
    assert step.reward == kept
    assert type(step.reward) is float


def test_published_rewards_are_clipped_and_gem_rewards_are_not():
    raw = RawStep("a", 12.5, True, False, b"{}")
    step = checks.transition(raw, spec(dialect="published"), LIMITS)
    assert step.reward == 10.0
    assert checks.is_solved(step, spec(dialect="published"))
    with pytest.raises(EnvViolation, match="between -1 and 1"):
        checks.transition(raw, spec(dialect="gem"), LIMITS)
    for value in (math.nan, math.inf, -math.inf):
        with pytest.raises(EnvViolation, match="not finite"):
            checks.transition(
                msgspec.structs.replace(raw, reward=value), spec(dialect="published"), LIMITS
            )


@pytest.mark.parametrize(
    ("reward", "terminated", "solved"),
    [(1.0, True, True), (1.0, False, False), (0.999, True, False), (0.0, True, False)],
)
def test_only_a_full_reward_at_the_end_is_a_win(reward, terminated, solved):
    step = checks.transition(RawStep("a", reward, terminated, False, b"{}"), spec(), LIMITS)
    assert checks.is_solved(step, spec()) is solved


def test_infos_of_every_kind():
    def info(data):
        raw = RawStep("a", 0.0, False, False, data)
        return checks.transition(raw, spec(), LIMITS).info

    assert info(b'{"a": 123456789012345678901234567890}') == {"a": 123456789012345678901234567890}
    assert info(b'{"spade": 1}') == {"spade": 1}
    for data in (
        b"[]",
        b"{",
        b'{"a": NaN}',
        b"\xff",
        b'{"a":' * 999,
        b'{"a": ' + b"9" * 5000 + b"}",
    ):
        with pytest.raises(EnvViolation, match="no JSON object") as caught:
            info(data)
        assert caught.value.code == "SPD407"
    with pytest.raises(EnvViolation, match="8193 bytes"):
        info(b'{"a":"' + b"x" * 8185 + b'"}')


def test_criteria_and_solutions():
    assert checks.criterion(RawCriterion(True)) is True
    for raw in (Raised("criterion", "KeyError", "x"), RawCriterion(Bad("int", "1"))):
        with pytest.raises(EnvFault) as caught:
            checks.criterion(raw)
        assert caught.value.code == "SPD505"
    assert checks.solution(RawSolution(actions=["a"]), spec()) == ["a"]
    assert checks.solution(RawSolution(), spec()) is None
    assert checks.solution(RawSolution(), spec("tool_use")) is None
    calls = RawSolution(calls=[[("find", b'{"a": 1}')], []])
    assert checks.solution(calls, spec("tool_use")) == [[("find", {"a": 1})], []]
    with pytest.raises(EnvViolation, match="no JSON object"):
        checks.solution(RawSolution(calls=[[("find", b"[]")]]), spec("tool_use"))
    lost = EnvFault("gone")
    with pytest.raises(EnvFault, match="gone"):
        checks.solution(lost, spec())
