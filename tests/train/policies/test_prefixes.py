"""What was read of a conversation is kept, and changes nothing of what is said."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from spade_train.crew import Crew  # noqa: E402
from spade_train.policies.base import Sampling  # noqa: E402
from spade_train.policies.prefixes import Prefixes  # noqa: E402

PLAIN = Sampling(max_tokens=24)
CUT = Sampling(temperature=0.6, top_p=0.95, top_k=20, max_tokens=24)
TURNS = 4


def talk(policy, sampling, count=40, *, names=True, turns=TURNS):
    """Several turns of conversations that end at their own time; every reply beside its prompt."""
    rng = np.random.default_rng(1)
    talks = {i: rng.integers(5, 300, 3 + i % 17).tolist() for i in range(count)}
    heard = {i: [rng.integers(5, 300, int(rng.integers(1, 9))).tolist() for _ in range(turns)]
             for i in range(count)}  # fmt: skip
    found = []
    policy.forget()
    for turn in range(turns):
        own = sorted(talks)
        prompts, seeds = [talks[i] for i in own], [100 * turn + i for i in own]
        if names:
            replies = policy.converse(prompts, sampling, seeds, own)
        else:
            replies = policy.generate(prompts, sampling, seeds)
        for i, prompt, reply in zip(own, prompts, replies, strict=True):
            found.append((prompt, reply))
            if reply.finish == "length" or (i + turn) % 5 == 4:
                del talks[i]
            else:
                talks[i] = [*prompt, *reply.token_ids, *heard[i][turn]]
    return found


@pytest.fixture
def chatty(small_policy):
    """Ends one token in seven, so that most conversations go on."""
    small_policy.stop_ids = frozenset(range(2, 60))
    return small_policy


@pytest.mark.parametrize("sampling", [PLAIN, CUT])
def test_replies_and_logprobs_are_those_of_reading_all_anew(chatty, sampling):
    kept, anew = talk(chatty, sampling), talk(chatty, sampling, names=False)
    assert len(kept) == len(anew) > 60
    for (prompt, reply), (other, expected) in zip(kept, anew, strict=True):
        assert prompt == other
        assert reply.token_ids == expected.token_ids
        assert reply.kept == expected.kept
        assert reply.logprobs == pytest.approx(expected.logprobs, abs=1e-5)
    assert all(reply.known == 0 for _, reply in anew)


def test_all_but_the_last_token_and_what_was_said_since_is_known(chatty):
    for prompt, reply in (found := talk(chatty, PLAIN)):
        assert reply.known < len(prompt)
    before = {tuple(prompt + reply.token_ids[:-1]) for prompt, reply in found}
    going_on = [(prompt, reply) for prompt, reply in found if reply.known]
    assert len(going_on) > 20
    for prompt, reply in going_on:
        assert tuple(prompt[: reply.known]) in before


def test_logprobs_hold_to_a_plain_pass_at_every_turn(chatty):
    for prompt, reply in talk(chatty, PLAIN):
        ids = torch.tensor([prompt + reply.token_ids])
        with torch.no_grad():
            logp = torch.log_softmax(chatty.model(input_ids=ids).logits[0].float(), -1)
        places = range(len(prompt) - 1, len(prompt) - 1 + len(reply.token_ids))
        expected = [float(logp[p, t]) for p, t in zip(places, reply.token_ids, strict=True)]
        assert reply.logprobs == pytest.approx(expected, abs=1e-5)


def test_a_prompt_that_does_not_go_on_is_read_anew(chatty):
    first = chatty.converse([[5, 6, 7, 8]], PLAIN, [1], ["a"])[0]
    other = [9, *[5, 6, 7, 8][1:], *first.token_ids, 11]
    again = chatty.converse([other], PLAIN, [2], ["a"])[0]
    assert again.known == 0
    assert again == chatty.generate([other], PLAIN, [2])[0]


def test_weights_that_changed_are_seen_after_forget(chatty):
    sampling = Sampling(max_tokens=4)
    first = chatty.converse([[5, 6, 7, 8]], sampling, [1], ["a"])[0]
    prompt = [5, 6, 7, 8, *first.token_ids, 11, 12]
    with torch.no_grad():
        for parameter in chatty.model.parameters():
            parameter.mul_(1.1)
    chatty.forget()
    again = chatty.converse([prompt], sampling, [2], ["a"])[0]
    assert again.known == 0
    assert again == chatty.generate([prompt], sampling, [2])[0]


def test_a_small_room_keeps_the_newest(chatty):
    chatty.engine.prefixes = Prefixes(room=60_000)
    kept, anew = talk(chatty, PLAIN), talk(chatty, PLAIN, names=False)
    assert [r.token_ids for _, r in kept] == [r.token_ids for _, r in anew]
    known = sum(reply.known > 0 for _, reply in kept)
    chatty.engine.prefixes = Prefixes(room=0)
    assert not any(reply.known for _, reply in talk(chatty, PLAIN))
    chatty.engine.prefixes = Prefixes()
    assert 0 < known < sum(reply.known > 0 for _, reply in talk(chatty, PLAIN))


def test_conversations_stay_where_they_were_read(chatty):
    alone = talk(chatty, PLAIN)
    with Crew(chatty.model, None, workers=2) as crew:
        chatty.engine = crew
        together = talk(chatty, PLAIN)
        homes = dict(crew._homes)
        crew.forget()
        assert not crew._homes
    assert set(homes.values()) == {0, 1}
    for (prompt, reply), (other, expected) in zip(together, alone, strict=True):
        assert prompt == other
        assert reply.token_ids == expected.token_ids
        assert reply.known == expected.known
