"""A world in which runs are small and real: a random model, real sandbox, designs that work."""

import json
import random
from pathlib import Path

import pytest

# Won by saying something whose length has the right remainder: a random model wins some plays.
GAME = '''class {name}Env(TextEnv):
    """{title}"""

    skill = "{skill}"
    max_turns = {turns}

    def reset(self, seed=None):
        self.rng = random.Random(seed)
        self.goal = self.rng.randrange({options})
        self.turn = 0
        return f"{title} Turn 1. Case {{self.rng.randrange(10**6)}}: say something.", {{}}

    def step(self, action):
        self.turn += 1
        if len(action) % {options} != self.goal:
            return f"No. Turn {{self.turn + 1}}.", -0.1, self.turn >= 2, False, {{}}
        return "Yes.", 1.0, True, False, {{}}

    def solution(self):
        return ["x" * (self.goal + {options})]
'''
DESK = '''class {name}Env(ToolEnv):
    """{title}"""

    skill = "data_retrieval"
    max_turns = 6

    def setup(self, rng):
        self.state = {{"seen": [], "code": rng.randrange(10, 99)}}

    @tool
    def look(self, place: str) -> str:
        """Look into a place.

        place: where to look
        """
        self.state["seen"].append(place)
        return f"In {{place}} lies a note: {{self.state['code']}}."

    def user_turns(self):
        places = {places}
        return [
            Turn(f"Look into the {{place}}.", done=lambda s, p=place: p in s["seen"])
            for place in places
        ]

    def solution(self):
        return [[call("look", place=place)] for place in {places}]
'''
TOOL_SKILLS = ("api_orchestration", "data_retrieval", "state_modification", "error_recovery",
               "tool_selection", "multi_step_workflows")  # fmt: skip
BROKEN = "class BrokenEnv(TextEnv):\n    def reset(self, seed=None):\n        return 1\n"
HINT = "Mind how long your answer is."


def designs(count=6):
    """Sources that the validator accepts."""
    titles = [
        "Feed the owl.",
        "Call the cat.",
        "Ring the bell.",
        "Wake the fox.",
        "Ask the king.",
        "Row home.",
    ]
    return [
        GAME.format(
            name=f"Length{i}",
            title=titles[i % len(titles)],
            skill="optimization",
            turns=2 + i % 2,
            options=6 + i,
        )
        for i in range(count)
    ]


def desks(count=4):
    """Tool-use sources that the validator accepts."""
    places = ["attic", "cellar", "drawer", "chest", "shed", "trunk"]
    return [
        DESK.format(name=f"Desk{i}", title=f"Look round house {i}.", places=places[i : i + 3])
        for i in range(count)
    ]


def answer(prompt, seed):
    """What a designer of this world writes: mostly sound code, sometimes none or a broken one."""
    rng = random.Random(seed)
    if "hint" in prompt[:200].lower() and "class" in prompt:
        return HINT
    roll = rng.random()
    if roll < 0.25:
        return "I would rather not."
    sound = desks() if any(skill in prompt for skill in TOOL_SKILLS) else designs()
    source = BROKEN if roll < 0.45 else rng.choice(sound)
    return f"```python\n{source}```"


@pytest.fixture(scope="session")
def sources():
    """Sources that the validator accepts."""
    return designs()


@pytest.fixture(scope="session")
def designer_url(start_chat_server, chat_body):
    """A chat server on this machine that designs; the same prompt and seed give the same answer."""

    def design(body):
        return 200, chat_body(answer(body["messages"][-1]["content"], body["seed"]))

    server = start_chat_server()
    server.answer = design
    return server.url


@pytest.fixture(scope="session")
def talker(make_model):
    """A random small model that ends one token in seven, so that its plays are not all cut."""

    def make(tokenizer, seed=0):
        model = make_model(len(tokenizer), seed, context=4096)
        model.generation_config.eos_token_id = [tokenizer.eos_token_id, *range(260, 320)]
        return model

    return make


@pytest.fixture(scope="session")
def model_folder(make_tokenizer, talker, tmp_path_factory):
    """A random small model in the Hugging Face layout."""
    folder = tmp_path_factory.mktemp("model")
    tokenizer = make_tokenizer()
    talker(tokenizer).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def words(model_folder):
    """Overrides of the tiny preset that make a run of this world take seconds."""

    def make(run_dir, **changes):
        values = {
            "model": model_folder,
            "run_dir": run_dir,
            "setting": "games",
            # What the preset is tuned to is its own affair: here a random model trains a moment.
            "replay_samples": 0,
            "learning_rate": 3e-4,
            "designer_learning_rate": 3e-4,
            "designer_kl_coefficient": 0.1,
            "designer_scale": 1.0,
            "acceptance_floor": 0.3,
            "top_p": 1.0,
            "blind_win_limit": 0.35,
            "steps": 3,
            "environments": 3,
            "skills_per_regeneration": 1,
            "seeds_per_group": 4,
            "minibatch_episodes": 8,
            "regenerate_every": 1,
            "designer_delay": 1,
            "prompt_style": "compact",
            "max_turns": 3,
            "context_tokens": 3000,
            "agent_max_tokens": 12,
            "designer_max_tokens": 1000,
            "designer_tries": 3,
            "hinted_plays": 4,
            "hint_max_tokens": 48,
            "heldout_every": 0,
            "workers": 1,
            **changes,
        }
        return [f"{key}={value}" for key, value in values.items()]

    return make


@pytest.fixture(scope="session")
def forced(make_tokenizer, talker):
    """A trainable policy whose designs are written by this world, at their true probability."""
    import torch

    from spade_train.policies.base import Generation
    from spade_train.policies.hf import HFPolicy

    class Forced(HFPolicy):
        write = staticmethod(answer)

        def generate(self, prompts, sampling, seeds):
            if sampling.max_tokens < 40:  # the agent speaks for itself
                return super().generate(prompts, sampling, seeds)
            return [self._force(p, s) for p, s in zip(prompts, seeds, strict=True)]

        @torch.inference_mode()
        def _force(self, prompt, seed):
            text = self.write(self.decode(prompt), seed)
            ids = [*self.template.plain(text), self.template.end_of_turn]
            logits = self.model(input_ids=torch.tensor([prompt + ids])).logits[
                0, len(prompt) - 1 : -1
            ]
            logp = torch.log_softmax(logits.float(), -1)
            return Generation(ids, logp[range(len(ids)), ids].tolist(), "stop")

    def make(seed=0, write=None):
        tokenizer = make_tokenizer()
        policy = Forced(talker(tokenizer, seed), tokenizer, name="forced")
        if write is not None:
            policy.write = write
        return policy

    return make


@pytest.fixture(scope="session")
def lines():
    """Reads the objects of a JSONL file."""

    def read(path):
        # Only a line feed ends a line: a model may say U+2028 and its like.
        return [json.loads(line) for line in Path(path).read_bytes().split(b"\n") if line]

    return read


@pytest.fixture(scope="session")
def timeless():
    """A line of metrics without what a clock decides."""

    def strip(line):
        return {key: value for key, value in line.items() if not key.startswith("seconds")}

    return strip
