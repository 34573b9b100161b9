import numpy as np
import pytest

torch = pytest.importorskip("torch")

from spade_train import loss  # noqa: E402
from spade_train.learners import terms  # noqa: E402


def grid():
    rng = np.random.default_rng(1)
    return rng.normal(0, 1, (4, 500))


def test_golden_values_hold_on_torch(golden):
    for case in golden["truncated_importance_weight"]:
        pair = [torch.tensor(float(case[key])) for key in ("train_logp", "rollout_logp")]
        found = terms.truncated_importance_weight(*pair, low=case["low"], high=case["high"])
        assert float(found) == pytest.approx(case["expected"], abs=1e-5)
    for case in golden["clipped_surrogate_loss"]:
        pair = [torch.tensor(float(case[key])) for key in ("ratio", "advantage")]
        bounds = {"eps_low": case["eps_low"], "eps_high": case["eps_high"]}
        found = terms.clipped_surrogate_loss(*pair, **bounds)
        assert float(found) == pytest.approx(case["expected"], abs=1e-5)
    for case in golden["kl_k3"]:
        pair = [torch.tensor(float(case[key])) for key in ("logp", "ref_logp")]
        assert float(terms.kl_k3(*pair)) == pytest.approx(case["expected"], abs=1e-5)


def test_torch_terms_equal_their_numpy_twins():
    a, b, gains, _ = grid()
    ta, tb, tg = (torch.tensor(x) for x in (a, b, gains))
    ratio, tratio = np.exp(a - b), (ta - tb).exp()
    pairs = [
        (loss.truncated_importance_weight(a, b), terms.truncated_importance_weight(ta, tb)),
        (loss.clipped_surrogate_loss(ratio, gains), terms.clipped_surrogate_loss(tratio, tg)),
        (loss.kl_k3(a, b), terms.kl_k3(ta, tb)),
        (loss.is_clipped(ratio, gains), terms.is_clipped(tratio, tg)),
    ]
    for expected, found in pairs:
        assert np.allclose(expected, found.numpy(), atol=1e-12)


def test_the_clip_takes_the_gradient_where_it_binds():
    ratio = torch.tensor([1.5, 0.5, 1.5, 0.5, 1.0], requires_grad=True)
    gains = torch.tensor([1.0, -1.0, -1.0, 1.0, 1.0])
    terms.clipped_surrogate_loss(ratio, gains).sum().backward()
    assert ratio.grad.tolist() == [0.0, 0.0, 1.0, -1.0, -1.0]
    assert terms.is_clipped(ratio.detach(), gains).tolist() == [True, True, False, False, False]


def test_the_importance_weight_has_no_gradient():
    logp = torch.tensor([-1.0], requires_grad=True)
    assert not terms.truncated_importance_weight(logp, torch.tensor([-1.2])).requires_grad


def test_kept_sets_renormalise_and_rows_without_one_use_the_whole_vocabulary():
    logits = torch.randn(3, 7, generator=torch.Generator().manual_seed(0))
    tokens = torch.tensor([2, 5, 1])
    kept = [(2, 3), None, (6, 1, 0)]
    found = terms.kept_logprobs(logits, tokens, kept, 0.5)
    scaled = logits / 0.5
    for row, ids in enumerate(kept):
        total = torch.logsumexp(scaled[row, list(ids)] if ids else scaled[row], 0)
        assert float(found[row]) == pytest.approx(float(scaled[row, tokens[row]] - total), abs=1e-6)
    whole = terms.kept_logprobs(logits, tokens, None, 1.0)
    assert torch.allclose(whole, torch.log_softmax(logits, -1).gather(1, tokens[:, None])[:, 0])
