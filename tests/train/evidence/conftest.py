"""Runs made by hand for the figures, and a small real world for the runs themselves."""

import json
import os
import random
import subprocess
import sys

import pytest

from spade_train.evidence.gather import HeldoutPoint, Made, RunFacts
from spade_train.evidence.stamps import Attempt, Stamp
from spade_train.presets import resolve

SOURCE = '''class ShiftEnv(TextEnv):
    """The {theme} shift: {rounds} rounds, {options} options."""

    skill = "{skill}"
    max_turns = {rounds}
    rounds = {rounds}
    options = {options}

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.tasks = [self.draw(rng) for _ in range(self.rounds)]
        self.turn = self.right = 0
        return self.tasks[0][0], {{}}

    def draw(self, rng):
        clue = rng.randrange(10)
        want = (clue + {shift}) % 10
        others = [item for item in range(10) if item != want]
        shown = rng.sample(others, self.options - 1) + [want]
        rng.shuffle(shown)
        listed = " ".join(map(str, shown))
        return f"The {theme} shows {{clue}}. Pick: {{listed}}", str(want)

    def step(self, action):
        hit = action.strip() == self.tasks[self.turn][1]
        self.turn += 1
        self.right += hit
        if self.turn < self.rounds:
            return self.tasks[self.turn][0], hit / self.rounds, False, False, {{}}
        return "Over.", 1.0 if self.right == self.rounds else 0.0, True, False, {{}}

    def solution(self):
        return [want for _, want in self.tasks]
'''
THEMES = ("river", "mill", "harbour", "garden", "museum", "station")
HINT = "Step on by the same number each time."


def written(rng):
    """A sound source with levers of its own."""
    return SOURCE.format(
        theme=rng.choice(THEMES),
        skill="mathematical_reasoning",
        rounds=rng.randint(1, 3),
        options=rng.randint(4, 8),
        shift=rng.randint(1, 3),
    )


@pytest.fixture(scope="session")
def made():
    """Makes a design: `made(step, wins=3, plays=4, regret=0.1, rounds=2)`."""

    def make(step, *, family="Shift", plays=4, wins=2, hinted=(4, 3), regret=None, **levers):
        source = f"class {family}Env:\n    step = {step}\n    levers = {sorted(levers.items())}\n"
        return Made(step, family, source, plays, wins, *hinted, regret, levers)

    return make


@pytest.fixture(scope="session")
def facts():
    """Makes a finished run by hand; held out: {step: {name: win rate}}."""

    def make(arm="full", seed=1, *, steps=8, made=(), tries=None, heldout=None, flops=None, new=()):
        config = resolve("tiny", overrides=[f"steps={steps}", f"seed={seed}"])
        points = [HeldoutPoint(s, r, dict.fromkeys(r, 0.75)) for s, r in (heldout or {}).items()]
        spent = flops or [float(step + 1) for step in range(steps + 1)]
        metrics = [
            {
                "step": i,
                "seconds": 3.0,
                "seconds_heldout": 1.0,
                "flops/agent": f,
                "flush": i == steps,
            }
            for i, f in enumerate(spent)
        ]
        account = {"flops": spent[-1], "tokens_out": 1000, "seconds": 2.0}
        return RunFacts(
            arm=arm,
            seed=seed,
            config=config,
            stamp=Stamp("c" * 64, "w" * 64, "h" * 64, [Attempt("code", 10.0, 20.0, 0)]),
            metrics=metrics,
            tries=tries or {},
            made=list(made),
            heldout=points,
            ledger={"parameters": 1000, "accounts": {"agent": account}},
            families={
                name: (name.split("-")[0], name in new) for p in points for name in p.unhinted
            },
        )

    return make


@pytest.fixture(scope="session")
def model_folder(make_tokenizer, make_model, tmp_path_factory):
    """A random small model that ends one token in seven."""
    folder = tmp_path_factory.mktemp("model")
    tokenizer = make_tokenizer()
    model = make_model(len(tokenizer), 0, context=4096)
    model.generation_config.eos_token_id = [tokenizer.eos_token_id, *range(260, 320)]
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def heldout_folder(tmp_path_factory):
    """Three held-out environments, two with hints."""
    folder = tmp_path_factory.mktemp("heldout")
    for number in range(3):
        (folder / f"env-{number}.py").write_text(written(random.Random(number)), encoding="utf-8")
        if number:
            (folder / f"env-{number}.hint.txt").write_text(HINT, encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def designer_url(start_chat_server):
    """A server that designs sound environments, and now and then writes none."""
    server = start_chat_server()

    def answer(body):
        prompt = body["messages"][-1]["content"]
        rng = random.Random(f"{body['seed']}")
        text = f"```python\n{written(rng)}```" if rng.random() < 0.8 else "I would rather not."
        if "class" in prompt and "hint" in prompt[:200].lower():
            text = HINT
        choice = {"message": {"content": text}, "finish_reason": "stop"}
        return 200, json.dumps({"choices": [choice]})

    server.answer = answer
    return server.url


@pytest.fixture(scope="session")
def small_words(model_folder, heldout_folder, designer_url):
    """Words of the evidence that make its runs take seconds."""
    return [
        f"model={model_folder}",
        f"heldout={heldout_folder}",
        f"designer_url={designer_url}",
        "setting=games",
        "ablation=external_designer",
        "designer_model=m",
        "invalid_reward=none",
        "environments=3",
        "skills_per_regeneration=1",
        "skills=[mathematical_reasoning]",
        "seeds_per_group=4",
        "hinted_plays=4",
        "heldout_plays=2",
        "minibatch_episodes=8",
        "max_turns=3",
        "context_tokens=3000",
        "agent_max_tokens=6",
        "designer_max_tokens=1500",
        "designer_tries=2",
        "workers=1",
        "replay_samples=0",
    ]


@pytest.fixture(scope="session")
def evidence_command():
    """The command line of the evidence, and the environment that it runs in."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "NO_COLOR": "1"}

    def command(*words):
        return [sys.executable, "-m", "spade_train.evidence", *map(str, words)], environment

    return command


@pytest.fixture(scope="session")
def gather_evidence(evidence_command):
    """Runs the evidence to its end and returns the finished process."""

    def run(*words):
        command, environment = evidence_command(*words)
        return subprocess.run(
            command, capture_output=True, text=True, timeout=900, env=environment, check=False
        )

    return run
