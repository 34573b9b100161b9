import json

import pytest

from spade_train.ledger import Ledger


def test_flops_follow_the_rule():
    ledger = Ledger(parameters=100)
    ledger.generated("agent", tokens_in=10, tokens_out=5, generations=2)
    ledger.trained("agent", 20, passes=1, forwards=1)
    account = ledger.account("agent")
    assert account.flops == 2 * 100 * 15 + (6 + 2) * 100 * 20
    assert (account.tokens_in, account.tokens_out, account.generations) == (10, 5, 2)
    assert account.trained_tokens == 20


def test_total_and_metrics():
    ledger = Ledger()
    ledger.generated("designer", tokens_in=3, tokens_out=4)
    ledger.executed("agent", 5)
    ledger.validated("designer", 2)
    total = ledger.total()
    assert (total.tokens_out, total.executions, total.validator_calls) == (4, 5, 2)
    assert ledger.metrics()["tokens/designer"] == 7


def test_time_is_charged_even_when_the_block_fails():
    ledger = Ledger()
    with pytest.raises(RuntimeError), ledger.timed("agent"):
        raise RuntimeError
    assert ledger.account("agent").seconds > 0


def test_state_survives_json():
    ledger = Ledger(parameters=7)
    ledger.generated("hint", tokens_in=1, tokens_out=2)
    again = Ledger.from_state(json.loads(json.dumps(ledger.to_state())))
    assert again.to_state() == ledger.to_state()
    again.generated("hint", tokens_in=1, tokens_out=2)
    assert again.account("hint").generations == 2
