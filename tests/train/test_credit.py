"""Who is paid what: windows, delays, guards, and what never trains."""

import math

import pytest

from spade_train.credit import agent_rows, designer_rows, take_in
from spade_train.ledger import Ledger
from spade_train.memory import Memory
from spade_train.objectives import make_objective
from spade_train.plays import Group, Play
from spade_train.population import Design
from spade_train.presets import resolve
from spade_train.rewards import SeedReturn
from spade_train.state import RunState
from spade_train.tokens import Conversation


def config(**changes):
    values = {
        "regenerate_every": 2, "designer_delay": 2, "steps": 8, "return_mode": "terminal",
        "designer_scale": 32, "acceptance_floor": 0.5, **changes,
    }  # fmt: skip
    return resolve("tiny", overrides=[f"{key}={value}" for key, value in values.items()])


def sample():
    return Conversation([1, 2, 3], [0, 1, 1], [0.0, -1.0, -1.0])


def design(slot, *, made=0, skill="optimization", wins=8, hinted=16, plays=16, valid=True):
    """A design with a window of plays: so many of them won, without and with the hint."""
    seeds = range(plays)
    unhinted = [SeedReturn(s, float(s < wins)) for s in seeds]
    return Design(
        made, slot, skill, "game", sha256=f"{slot:064x}", title="t", source="s", hint="h",
        sample=sample(), valid=valid,
        solved=[s < wins for s in seeds] if valid else [],
        returns=[float(s < wins) for s in seeds] if valid else [],
        unhinted=unhinted if valid else [],
        hinted=[SeedReturn(s, float(s < hinted)) for s in seeds] if valid else [],
    )  # fmt: skip


def state(*designs, acceptance=1.0, step=2, made=0):
    objective = make_objective("blend")
    found = RunState(Memory(), objective, Ledger(), step=step, designs=list(designs), made=made)
    found.acceptance = {d.made: acceptance for d in designs}
    return found


def test_designs_are_paid_at_their_delay_and_centred_by_skill(golden):
    [case] = golden["designer_batch"]
    skills = {"math": "mathematical_reasoning", "logic": "logical_deduction"}
    designs = []
    for slot, env in enumerate(case["environments"]):
        found = design(slot, skill=skills[env["skill"]], plays=0)
        for number, wins in enumerate(env["wins"]):
            won = [play < wins for play in range(case["plays_per_step"])]
            found.solved += won
            found.returns += [float(w) for w in won]
            if number == 0:
                found.unhinted = [SeedReturn(s, float(w)) for s, w in enumerate(won)]
        hinted = env["hinted_mean"]
        found.hinted = [SeedReturn(s, hinted) for s in range(case["plays_per_step"])]
        designs.append(found)
    run = state(*designs)
    rows, news = designer_rows(run, config(), due=2)
    assert [row.advantage / 32 for row in rows] == pytest.approx(
        case["expected"]["centred"], abs=1e-5
    )
    raw = case["expected"]["raw"]
    assert news["designer/reward_raw"] == pytest.approx(sum(raw) / len(raw), abs=1e-5)
    assert run.designs == []
    assert {row.role for row in rows} == {"designer"}


def test_designs_wait_for_their_delay_and_the_end_flushes_them():
    early, late = design(0, made=0), design(1, made=2, wins=2)
    run = state(early, late, step=3)
    assert designer_rows(run, config(), due=1) == ([], {})
    assert designer_rows(run, config(), due=2)[1]["designer/samples"] == 1
    assert run.designs == [late]
    assert designer_rows(run, config(), due=math.inf)[1]["designer/samples"] == 1
    assert run.designs == []


def test_invalid_designs_are_paid_only_where_a_number_says_so():
    pool = [design(0), design(1, wins=2), design(2, valid=False)]
    none = state(*pool)
    rows, _ = designer_rows(none, config(invalid_reward="none"), due=2)
    assert len(rows) == 2
    rows, news = designer_rows(state(*pool), config(invalid_reward=0.0), due=2)
    assert len(rows) == 3
    assert news["designer/samples"] == 3
    assert rows[2].advantage == min(row.advantage for row in rows)
    assert sum(row.advantage for row in rows) == pytest.approx(0, abs=1e-9)


def test_a_faulting_environment_and_one_without_regret_are_paid_like_invalid_ones():
    faulty, hintless, fine = design(0), design(1), design(2)
    faulty.faults = 1
    hintless.hinted = []
    rows, news = designer_rows(state(faulty, hintless, fine), config(invalid_reward=0.0), due=2)
    assert news["designer/unjudged"] == 2
    assert rows[0].advantage == rows[1].advantage < 0 < rows[2].advantage
    rows, news = designer_rows(state(faulty, fine), config(invalid_reward="none"), due=2)
    assert news["designer/samples"] == 1
    assert rows == []  # one sample is equal to itself
    assert news["guards/designer_equal"] == 1


@pytest.mark.parametrize("voided", ["all", "hinted"])
def test_a_design_whose_plays_the_host_voided_is_neither_paid_nor_blamed(voided):
    starved, fine, poor = design(0), design(1), design(2, wins=2)
    starved.hinted = [SeedReturn(pair.seed, None) for pair in starved.hinted]
    if voided == "all":
        starved.solved = [None] * 16
        starved.returns = [None] * 16
    rows, news = designer_rows(state(starved, fine, poor), config(invalid_reward=0.0), due=2)
    assert news["designer/samples"] == 2
    assert news["designer/unjudged"] == 1
    assert [row.sample_id for row in rows] == ["design-000000-001", "design-000000-002"]
    starved.faults = 1  # its own fault besides: then it is blamed
    _, news = designer_rows(state(starved, fine, poor), config(invalid_reward=0.0), due=2)
    assert news["designer/samples"] == 3


def test_a_design_that_faulted_in_play_is_never_shown_to_the_designer():
    for sound in (design(0), design(0, wins=16)):  # an exemplar, and a counterexample
        assert sound.record("paired") is not None
        sound.faults = 1
        assert sound.record("paired") is None


def test_below_the_acceptance_floor_the_designer_rests():
    pool = [design(0), design(1, wins=2)]
    rows, news = designer_rows(state(*pool, acceptance=0.4), config(), due=2)
    assert rows == []
    assert news["guards/designer_below_floor"] == 1
    rows, news = designer_rows(state(*pool, acceptance=0.6), config(), due=2)
    assert len(rows) == 2
    assert "guards/designer_below_floor" not in news


def test_a_frozen_designer_is_judged_but_not_trained():
    rows, news = designer_rows(
        state(design(0), design(1, wins=2)), config(ablation="frozen_designer"), due=2
    )
    assert rows == []
    assert news["designer/reward_raw"] > 0


def test_hints_are_trained_only_where_asked():
    hinted = [design(0), design(1, wins=2)]
    for one in hinted:
        one.hint_sample = sample()
    rows, _ = designer_rows(state(*hinted), config(train_hints=True), due=2)
    assert [row.sample_id for row in rows] == [
        "design-000000-000", "hint-000000-000", "design-000000-001", "hint-000000-001"
    ]  # fmt: skip


class _Dialogue:
    """What a play holds after it: its samples."""

    def __init__(self, samples):
        self.samples = samples
        self.messages = []


def play(seed, value, *, hint=None, fault=None, samples=1, name="000000-000"):
    group = Group(name, "0" * 64, "s", "game", [seed], hint)
    done = Play(group, seed, rewards=[value], terminated=True, solved=value == 1.0, fault=fault)
    done.dialogue = _Dialogue([sample() for _ in range(samples)])
    return done


VOID = {"kind": "EnvRaised", "code": "SPD401", "message": "x"}
STARVED = {"kind": "HostStarved", "code": None, "message": "x", "host": True}


def test_agent_rows_are_weighed_within_their_group_and_void_or_hinted_plays_never_train():
    group = [play(1, 1.0), play(2, 0.0, fault=VOID), play(3, 0.0), play(4, 0.0, samples=3)]
    hinted = [play(1, 1.0, hint="h"), play(3, 0.0, hint="h")]
    rows, news = agent_rows([group, hinted], config(), 5, version=3)
    assert news == {"agent/groups": 1, "agent/groups_equal": 0}
    assert [row.sample_id for row in rows] == [
        "5-000000-000-0", "5-000000-000-2", *["5-000000-000-3"] * 3
    ]  # fmt: skip
    assert rows[0].advantage == pytest.approx(math.sqrt(2), abs=1e-5)
    assert rows[1].advantage == rows[2].advantage == pytest.approx(-math.sqrt(0.5), abs=1e-5)
    assert {row.policy_version for row in rows} == {3}


def test_equal_groups_and_groups_of_one_give_no_advantage():
    equal = [play(1, 1.0), play(2, 1.0)]
    single = [play(1, 1.0, name="000000-001"), play(2, 0.0, fault=VOID, name="000000-001")]
    rows, news = agent_rows([equal, single], config(), 0, version=0)
    assert news["agent/groups_equal"] == 2
    assert [row.advantage for row in rows] == [0.0, 0.0]


def test_windows_take_in_what_counts_and_faults_are_charged():
    run = state(Design(0, 0, "optimization", "game", source="s", hint="h"), step=0)
    plain = [play(1, 1.0), play(2, 0.0, fault=VOID), play(3, 0.0), play(4, 0.0, fault=STARVED)]
    hinted = [play(1, 1.0, hint="h"), play(2, 1.0, hint="h"), play(3, 1.0, hint="h")]
    news = take_in(run, config(), 0, [plain, hinted])
    found = run.pool[0]
    assert found.solved == [True, None, False, None]
    assert found.returns == [1.0, None, 0.0, None]
    assert found.faults == 1  # the host's own failure is nobody's fault
    assert news["designer/regret"] == pytest.approx(0.5)  # seeds 1 and 3: +0 and +1
    assert "designer/band_share" not in news
    news = take_in(run, config(), 1, [[play(5, 0.0), play(6, 0.0)]])
    assert found.win_rate == pytest.approx(0.25)
    assert news == {"designer/band_share": 1.0}
    assert found.regret("paired").value == pytest.approx(0.5)  # of the pool's first step only


def test_a_design_survives_its_way_through_json():
    import json

    found = design(3, wins=5)
    found.sample.kept = [None, (2, 5), (3,)]
    found.faults = 2
    back = Design.from_state(json.loads(json.dumps(found.to_state())))
    assert back == found
