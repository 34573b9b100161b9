import json
import random
from hashlib import sha256

import pytest

from spade_train.presets import resolve

SKILLS = ("mathematical_reasoning", "pattern_recognition", "memory_recall")
THEMES = ("river", "mill", "harbour", "garden", "museum", "station")
OPS = ("shift", "mirror", "double")
HOSTILE = "<script>window.hacked=1</script> </script><img src=x onerror=window.hacked=1> \u202e\x07"

SOURCE = '''class {op}Env(TextEnv):
    """The {theme} {op}: {rounds} rounds, {options} options."""
    skill = "{skill}"
    max_turns = {limit}
    rounds = {rounds}
    options = {options}

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.tasks = [self.draw(rng) for _ in range(self.rounds)]
        self.turn = self.right = 0
        return self.tasks[0][0], {{}}

    def draw(self, rng):
        clue = rng.randrange(10)  # the {theme}'s number
        want = (clue + {shift}) % 10
        others = [n for n in range(10) if n != want]
        shown = rng.sample(others, self.options - 1) + [want]
        rng.shuffle(shown)
        return f"The {theme} surge {{clue}}. Pick: {{shown}}", str(want)

    def step(self, action):
        hit = action == self.tasks[self.turn][1]
        self.turn += 1
        self.right += hit
        if self.turn < self.rounds:
            return self.tasks[self.turn][0], hit / self.rounds, False, False, {{}}
        return "Over.", 1.0 if self.right == self.rounds else 0.0, True, False, {{}}

    def solution(self):
        return [want for _, want in self.tasks]
'''


class RunWriter:
    """Writes a made-up run in the format of a run folder: a skilled agent grows, levers follow."""

    def __init__(self, path, *, steps=24, slots=8, plays=8, seed=1):
        self.path, self.steps, self.slots, self.plays = path, steps, slots, plays
        self.rng = random.Random(seed)
        self.accepted = []

    def write(self):
        (self.path / "episodes").mkdir(parents=True)
        words = [f"steps={self.steps}", f"environments={self.slots}", "run_dir=runs/made-up"]
        words += ["setting=games", "skills_per_regeneration=1"]
        config = resolve("tiny", overrides=words)
        (self.path / "config.yaml").write_text(config.to_yaml(), encoding="utf-8")
        with (
            (self.path / "metrics.jsonl").open("w", encoding="utf-8") as metrics,
            (self.path / "designs.jsonl").open("w", encoding="utf-8") as designs,
        ):
            for step in range(self.steps):
                row = self.step(step, designs)
                metrics.write(json.dumps(row) + "\n")
        return self.path

    def step(self, step, designs):
        grown = step / max(1, self.steps - 1)
        pool, tries, lines = [], 0, []
        for slot in range(self.slots):
            for attempt in range(5):
                design = self.design(step, slot, attempt, grown)
                tries += 1
                designs.write(json.dumps(design) + "\n")
                if design["verdict"] == "accepted":
                    pool.append(design)
                    break
        won = {"unhinted": 0, "hinted": 0}
        band = 0
        for design in pool:
            outcome = self.play(step, design, grown, lines)
            band += 0.2 <= outcome["unhinted"] / self.plays <= 0.8
            for arm in won:
                won[arm] += outcome[arm]
        self.accepted += pool
        path = self.path / "episodes" / f"step-{step:06d}.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        total = max(1, len(pool) * self.plays)
        row = {
            "step": step,
            "seconds": 9.5 + self.rng.random(),
            "agent/win_rate": won["unhinted"] / total,
            "agent/win_rate_hinted": won["hinted"] / total,
            "agent/groups_equal": self.rng.randrange(3),
            "designer/regret": (won["hinted"] - won["unhinted"]) / total,
            "designer/regret_se": 0.06,
            "designer/acceptance": len(pool) / tries,
            "designer/band_share": band / self.slots,
            "loss/agent": self.rng.gauss(0, 0.02),
            "kl": 0.001 * step,
            "importance_weight_mean": 1.0,
            "faults/SPD801": step % 5 == 3,
        }
        if step % 6 == 0 or step == self.steps - 1:
            row["heldout/win_rate"] = 0.2 + 0.45 * grown + self.rng.gauss(0, 0.01)
            row["heldout/win_rate_se"] = 0.02
        for role, rate in (("agent", 9000), ("designer", 4000), ("hint", 900)):
            row[f"tokens/{role}"] = rate * (step + 1)
            row[f"seconds/{role}"] = 0.001 * rate * (step + 1)
            row[f"flops/{role}"] = 2.5e6 * rate * (step + 1)
        return row

    def design(self, step, slot, attempt, grown):
        rng = self.rng
        skill = SKILLS[slot % 3]
        op, theme = OPS[slot % 3], rng.choice(THEMES)
        options = max(2, min(9, round(3 + 4 * grown + rng.gauss(0, 0.8))))
        rounds = max(1, min(4, round(1 + 2 * grown + rng.gauss(0, 0.5))))
        values = {"op": op.title(), "theme": theme, "skill": skill, "options": options}
        source = SOURCE.format(**values, rounds=rounds, limit=rounds + 1, shift=rng.randrange(1, 9))
        title = f"The {theme} {op}: {rounds} rounds, {options} options."
        findings, verdict, raw = [], "accepted", None
        luck = rng.random()
        if luck < 0.05:
            source, verdict, raw = None, "rejected", "I would rather not. " + HOSTILE
        elif luck < 0.2:
            verdict = "rejected"
            code, gate, line = rng.choice(
                [("SPD003", "syntax", 4), ("SPD701", "audit", None), ("SPD803", "step", 21)]
            )
            message = f"expected sound code, saw {HOSTILE}"
            findings = [finding(code, "error", gate, message, line)]
        elif luck < 0.3:
            findings = [finding("SPD704", "warning", "audit", "near-duplicate", None)]
        if step == 0 and slot == 0 and verdict == "accepted":
            title = HOSTILE
        exemplars = [d["sha256"] for d in rng.sample(self.accepted, min(2, len(self.accepted)))]
        return {
            "step": step,
            "slot": slot,
            "try": attempt,
            "kind": "game",
            "skill": skill,
            "title": title if source else None,
            "sha256": sha256(source.encode()).hexdigest() if source else None,
            "source": source,
            "hint": f"Shift what the {theme} shows; the rule never changes." if source else None,
            "verdict": verdict,
            "findings": findings,
            "document_id": "mathematics/remainders-on-a-clock",
            "tokens": 200,
            "exemplars": exemplars,
            "raw_text_if_no_code": raw,
        }

    def play(self, step, design, grown, lines):
        seeds = [step * 1000 + i for i in range(self.plays)]
        wins = {"unhinted": 0, "hinted": 0}
        for arm, chance in (("unhinted", 0.2 + 0.5 * grown), ("hinted", 0.85)):
            for seed in seeds:
                fault = arm == "unhinted" and self.rng.random() < 0.01
                episode = self.episode(step, design, arm, seed, chance)
                if fault:
                    episode |= {
                        "fault": {"kind": "EnvTimeout", "code": "SPD801", "message": "too slow"},
                        "solved": False,
                    }
                wins[arm] += episode["solved"]
                lines.append(episode)
        return wins

    def episode(self, step, design, arm, seed, chance):
        rng = random.Random(f"{design['sha256']}{arm}{seed}")
        task = random.Random(f"{design['sha256']}{seed}")
        first = f"The {task.choice(THEMES)} shows {task.randrange(10)}. Pick: 3 5 7"
        if arm == "hinted":
            first += f"\n\nHint: {design['hint']}"
        hits = [rng.random() < chance for _ in range(2)]
        actions = [str(rng.randrange(10)) for _ in hits]
        return {
            "step": step,
            "design": design["sha256"],
            "arm": arm,
            "seed": seed,
            "messages": [f"I pick \\boxed{{{a}}}" for a in actions],
            "observations": [first, "The mill shows 4. Pick: 1 2 9", "Over."],
            "actions": actions,
            "rewards": [0.5 * hits[0], 1.0 if all(hits) else 0.0],
            "terminated": True,
            "truncated": False,
            "solved": all(hits),
            "return": float(all(hits)),
            "fault": None,
            "turns": 2,
        }


def finding(code, severity, gate, message, line):
    return {"code": code, "severity": severity, "gate": gate, "message": message, "line": line}


@pytest.fixture(scope="session")
def make_run():
    """Write a made-up run folder: `make_run(path, steps=..., slots=..., plays=...)`."""

    def make(path, **sizes):
        return RunWriter(path, **sizes).write()

    return make


@pytest.fixture(scope="session")
def run_folder(make_run, tmp_path_factory):
    """A made-up run of 24 steps with hostile texts in it."""
    return make_run(tmp_path_factory.mktemp("runs") / "made-up")
