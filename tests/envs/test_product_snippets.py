"""The Python API that stays stable, as a user would type it."""

import gymnasium as gym

import spade_envs
from spade_runtime import EnvSpec, SandboxPool, ValidationReport, validate

CRATE = '''
class CrateShuffleEnv(TextEnv):
    """Move the crates of one stack so that they stand in the order of their weights."""

    skill = "optimization"
    max_turns = 15

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.crates = rng.sample(range(10, 99), 5)
        if self.crates == sorted(self.crates):
            self.crates.reverse()
        self.turn = 0
        return f"Crates, top first: {self._shown()}. Say 'swap I J' (1 to 5); lightest on top.", {}

    def _shown(self):
        return " ".join(map(str, self.crates))

    def step(self, action):
        self.turn += 1
        over = self.turn >= self.max_turns
        words = action.split()
        if len(words) != 3 or words[0] != "swap" or not set(words[1:]) <= set("12345"):
            return "Say 'swap I J'.", 0.0, False, over, {}
        i, j = int(words[1]) - 1, int(words[2]) - 1
        self.crates[i], self.crates[j] = self.crates[j], self.crates[i]
        if self.crates == sorted(self.crates):
            return "All in order.", 1.0, True, False, {}
        return f"Now: {self._shown()}.", 0.0, False, over, {}

    def solution(self):
        crates, moves = list(self.crates), []
        for place, weight in enumerate(sorted(crates)):
            at = crates.index(weight)
            if at != place:
                crates[place], crates[at] = crates[at], crates[place]
                moves.append(f"swap {place + 1} {at + 1}")
        return moves
'''


def test_the_snippets_of_the_python_api(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "crate_shuffle_env.py").write_text(CRATE)

    report = validate("crate_shuffle_env.py", profile="standard")
    assert isinstance(report, ValidationReport)
    assert (report.verdict, [f.code for f in report.findings]) == ("accepted", [])

    with SandboxPool() as pool, pool.open("crate_shuffle_env.py", instances=16) as session:
        observations = session.reset(seeds=[7] * 16)
        assert len({one.observation for one in observations}) == 1
        results = session.step(["swap 1 2"] * 16)
        assert [one.reward for one in results] == [results[0].reward] * 16

    spec = spade_envs.register("crate_shuffle_env.py")
    assert isinstance(spec, EnvSpec)
    pooled = spade_envs.register("crate_shuffle_env.py", pool="pool/")
    assert pooled.id == spec.id == "spade/CrateShuffle-v0"
    assert spade_envs.register_pool("pool/") == [spec.id]

    env = gym.make(spec.id)
    assert env.reset(seed=7)[0] == observations[0].observation
    env.close()
    vec = gym.make_vec(spec.id, num_envs=64)
    texts, _ = vec.reset(seed=[7] * 64)
    assert set(texts) == {observations[0].observation}
    vec.close()
    spade_envs.unregister(spec.id)
