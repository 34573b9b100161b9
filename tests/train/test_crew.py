"""Two processes give what one gives, and a lost one is one clear error."""

import copy
import os
import signal

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from spade_runtime.errors import HostError  # noqa: E402
from spade_train.crew import Crew  # noqa: E402
from spade_train.learners.base import TrainBatch, TrainRow  # noqa: E402
from spade_train.learners.torch_learner import LearnerSettings, TorchLearner  # noqa: E402
from spade_train.policies.base import Sampling  # noqa: E402


def rows_of(policy, count=40):
    rng = np.random.default_rng(3)
    prompts = [rng.integers(5, 300, int(n)).tolist() for n in rng.integers(3, 30, count)]
    replies = policy.generate(prompts, Sampling(max_tokens=10), range(count))
    return [
        TrainRow(
            "designer" if i % 5 == 0 else "agent",
            prompt + reply.token_ids,
            [0] * len(prompt) + [1] * len(reply.token_ids),
            [0.0] * len(prompt) + reply.logprobs,
            None,
            float(rng.normal()),
            0,
            str(i),
        )
        for i, (prompt, reply) in enumerate(zip(prompts, replies, strict=True))
    ]


def test_two_processes_generate_and_train_as_one_does(small_policy):
    settings = LearnerSettings(
        learning_rate={"agent": 1e-3, "designer": 1e-3},
        kl_coefficient={"agent": 0.0, "designer": 0.1},
        optimizer="per_role",
        minibatch_episodes=20,
    )
    rows = rows_of(small_policy)
    prompts = [row.ids[:3] for row in rows]
    alone = TorchLearner(copy.deepcopy(small_policy.model), settings)
    one = [alone.update(TrainBatch(rows, step)) for step in range(2)]
    learner = TorchLearner(small_policy.model, settings)
    with Crew(small_policy.model, learner.reference, workers=2) as crew:
        learner.engine = small_policy.engine = crew
        two = [learner.update(TrainBatch(rows, step)) for step in range(2)]
        together = small_policy.generate(prompts, Sampling(max_tokens=12), range(40))
    for mine, theirs in zip(two, one, strict=True):
        assert mine == pytest.approx(theirs, rel=1e-3, abs=1e-6)
    for name, parameter in learner.parameters.items():
        assert torch.allclose(parameter, alone.parameters[name], atol=1e-4)
    # The helper generated with the updated weights: they are the same memory.
    small_policy.engine = type(small_policy)(
        small_policy.model, small_policy.tokenizer, name="alone"
    ).engine
    again = small_policy.generate(prompts, Sampling(max_tokens=12), range(40))
    assert [r.token_ids for r in together] == [r.token_ids for r in again]


def test_a_lost_worker_is_one_clear_error(small_policy):
    rows = rows_of(small_policy)
    with Crew(small_policy.model, None, workers=2) as crew:
        os.kill(crew._helpers[0]._process.pid, signal.SIGKILL)
        with pytest.raises(HostError, match="worker process ended with exit code -9"):
            crew.logprobs(rows, LearnerSettings())
