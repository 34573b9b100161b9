import numpy as np
import pytest

torch = pytest.importorskip("torch")

from spade_train.errors import Diverged, PolicyError  # noqa: E402
from spade_train.policies.base import Policy, Sampling  # noqa: E402
from spade_train.policies.hf import HFPolicy  # noqa: E402
from spade_train.policies.sampling import draw, uniforms  # noqa: E402

PLAIN = Sampling(max_tokens=24)
CUT = Sampling(temperature=0.6, top_p=0.95, top_k=20, max_tokens=24)
NUCLEUS = Sampling(temperature=1.4, top_p=0.5, max_tokens=24)


def prompts_of(policy, sizes=(3, 40, 11, 25, 3, 18)):
    rng = np.random.default_rng(0)
    return [rng.integers(5, 300, size).tolist() for size in sizes]


def reference_logprobs(policy, prompt, reply, sampling):
    """One plain forward pass over the whole sequence, without cache, padding or batch."""
    ids = torch.tensor([prompt + reply.token_ids])
    with torch.no_grad():
        logits = policy.model(input_ids=ids).logits[0].float() / sampling.temperature
    found = []
    for place, token in enumerate(reply.token_ids):
        row = logits[len(prompt) - 1 + place]
        kept = list(reply.kept[place]) if reply.kept else list(range(len(row)))
        found.append(float(row[token] - torch.logsumexp(row[kept], 0)))
    return found


@pytest.mark.parametrize("sampling", [PLAIN, CUT, NUCLEUS])
def test_logprobs_are_those_of_a_plain_forward_pass_over_the_kept_set(small_policy, sampling):
    prompts = prompts_of(small_policy)
    replies = small_policy.generate(prompts, sampling, range(len(prompts)))
    for prompt, reply in zip(prompts, replies, strict=True):
        expected = reference_logprobs(small_policy, prompt, reply, sampling)
        assert reply.logprobs == pytest.approx(expected, abs=1e-4)
        assert (reply.kept is not None) == sampling.restricts
        if reply.kept:
            assert all(t in kept for t, kept in zip(reply.token_ids, reply.kept, strict=True))


def test_kept_sets_hold_to_top_k_and_top_p(small_policy):
    prompt = prompts_of(small_policy)[1]
    reply = small_policy.generate([prompt], CUT, [3])[0]
    ids = torch.tensor([prompt + reply.token_ids])
    with torch.no_grad():
        logits = small_policy.model(input_ids=ids).logits[0].float() / CUT.temperature
    for place, kept in enumerate(reply.kept):
        top = torch.softmax(logits[len(prompt) - 1 + place].topk(CUT.top_k).values, 0)
        needed = int((top.cumsum(0) - top < CUT.top_p).sum())
        assert len(kept) == needed <= CUT.top_k


def test_a_row_draws_the_same_alone_and_in_any_batch(small_policy):
    prompts = prompts_of(small_policy)
    together = small_policy.generate(prompts, PLAIN, [10, 11, 12, 13, 14, 15])
    alone = [small_policy.generate([p], PLAIN, [10 + i])[0] for i, p in enumerate(prompts)]
    assert [r.token_ids for r in together] == [r.token_ids for r in alone]
    again = small_policy.generate(prompts, PLAIN, [10, 11, 12, 13, 14, 15])
    assert again == together
    other = small_policy.generate(prompts, PLAIN, [20, 21, 22, 23, 24, 25])
    assert [r.token_ids for r in other] != [r.token_ids for r in together]


def test_small_batches_and_finished_rows_change_nothing(small_policy):
    """Rows end at different tokens, so that the batch shrinks while it runs."""
    small_policy.stop_ids = frozenset(range(2, 60))
    prompts = prompts_of(small_policy, sizes=[5 + i % 17 for i in range(40)])
    replies = small_policy.generate(prompts, Sampling(max_tokens=60), range(40))
    lengths = {len(r.token_ids) for r in replies}
    assert len(lengths) > 5
    assert all((r.token_ids[-1] in small_policy.stop_ids) == (r.finish == "stop") for r in replies)
    assert not any(set(r.token_ids[:-1]) & small_policy.stop_ids for r in replies)
    small_policy.batch_tokens = 300
    batches = small_policy.generate(prompts, Sampling(max_tokens=60), range(40))
    assert [r.token_ids for r in batches] == [r.token_ids for r in replies]
    for prompt, reply in zip(prompts, replies, strict=True):
        expected = reference_logprobs(small_policy, prompt, reply, PLAIN)
        assert reply.logprobs == pytest.approx(expected, abs=1e-4)


def test_draws_follow_the_distribution():
    """Chi-square against the softmax, 20,000 draws of 12 tokens; 31.3 is the 99.9 % quantile."""
    logits = torch.linspace(-1.5, 1.5, 12).repeat(20_000, 1)
    sampling = Sampling(temperature=0.7)
    tokens, _, _ = draw(logits, sampling, uniforms(np.arange(20_000, dtype=np.uint64), 5))
    seen = torch.bincount(tokens, minlength=12).double()
    expected = torch.softmax(logits[0].double() / 0.7, 0) * 20_000
    assert float(((seen - expected) ** 2 / expected).sum()) < 31.3


def test_a_stream_is_uniform_and_its_numbers_are_independent_of_the_batch():
    seeds = np.arange(1000, dtype=np.uint64)
    numbers = np.stack([uniforms(seeds, t) for t in range(50)])
    assert abs(numbers.mean() - 0.5) < 0.005
    assert abs(np.corrcoef(numbers[0], numbers[1])[0, 1]) < 0.1
    assert (uniforms(seeds[17:18], 9) == numbers[9, 17]).all()


def test_the_largest_uniform_number_draws_a_token_that_has_mass():
    logits = torch.tensor([[0.0, 1.0, float("-inf"), float("-inf")]])
    tokens, logprobs, _ = draw(logits, Sampling(), np.array([1 - 2**-53]))
    assert tokens.tolist() == [1]
    assert torch.isfinite(logprobs).all()


def test_temperature_zero_takes_the_likeliest(small_policy):
    prompt = prompts_of(small_policy)[1]
    reply = small_policy.generate([prompt], Sampling(temperature=0, max_tokens=5), [0])[0]
    assert reply.logprobs == [0.0] * 5
    assert reply.kept == [(t,) for t in reply.token_ids]


def test_a_reply_ends_at_the_context(small_policy):
    room = 6
    prompt = [7] * (512 - room)
    reply = small_policy.generate([prompt], Sampling(max_tokens=100), [1])[0]
    assert (len(reply.token_ids), reply.finish) in {
        (room, "length"),
        (len(reply.token_ids), "stop"),
    }
    with pytest.raises(PolicyError, match="512 tokens"):
        small_policy.generate([[7] * 512], PLAIN, [1])


def test_saved_and_loaded_it_is_the_same_policy(small_policy, tmp_path):
    small_policy.model.save_pretrained(tmp_path)
    small_policy.tokenizer.save_pretrained(tmp_path)
    loaded = HFPolicy.load(tmp_path, device="cpu")
    assert isinstance(loaded, Policy)
    prompts = prompts_of(loaded)
    seeds = range(len(prompts))
    assert loaded.generate(prompts, PLAIN, seeds) == small_policy.generate(prompts, PLAIN, seeds)


def test_a_missing_model_is_one_clear_error(tmp_path):
    with pytest.raises(PolicyError, match="can't be loaded"):
        HFPolicy.load(tmp_path / "nothing")


@pytest.mark.parametrize("sampling", [PLAIN, CUT])
def test_weights_that_have_diverged_are_one_clear_error(small_policy, sampling):
    with torch.no_grad():
        next(small_policy.model.parameters()).fill_(float("nan"))
    with pytest.raises(Diverged, match="not finite"):
        small_policy.generate(prompts_of(small_policy), sampling, range(6))
