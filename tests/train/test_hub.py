"""The model hub where it is away: said at once, and in one line."""

import socket

import pytest

constants = pytest.importorskip("huggingface_hub.constants")

from spade_runtime.errors import UsageError  # noqa: E402
from spade_train.corpus import Corpus  # noqa: E402
from spade_train.errors import PolicyError  # noqa: E402
from spade_train.hub import cache_alone, unreachable  # noqa: E402


@pytest.fixture
def nowhere(monkeypatch):
    """The hub at an address where nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{port}")
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)


def test_any_answer_is_a_sign_of_life(chat_server, monkeypatch):
    monkeypatch.setattr(constants, "ENDPOINT", chat_server.url)  # it knows no HEAD: HTTP 501
    assert unreachable() == ""
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert unreachable() == "HF_HUB_OFFLINE is set"


def test_the_switch_is_turned_back(nowhere):
    assert "refused" in unreachable()
    before = constants.HF_HUB_OFFLINE
    with pytest.raises(KeyError), cache_alone(when=True):
        assert constants.HF_HUB_OFFLINE is True
        raise KeyError
    assert constants.HF_HUB_OFFLINE is before
    with cache_alone(when=False):
        assert constants.HF_HUB_OFFLINE is before


def test_a_dataset_that_can_not_be_had_is_told_without_retries(nowhere, caplog):
    pytest.importorskip("datasets", reason="datasets is not installed")
    with pytest.raises(UsageError, match="hub can't be reached .*refused.*name a .jsonl"):
        Corpus.open(["hf:nobody/nothing"], max_words=5)
    assert not [r for r in caplog.records if "Retrying" in r.getMessage()]


def test_a_model_that_can_not_be_had_is_told_without_retries(nowhere, caplog):
    pytest.importorskip("torch")
    from spade_train.policies.hf import HFPolicy

    with pytest.raises(PolicyError, match="hub can't be reached .*refused.*give a folder"):
        HFPolicy.load("nobody/nothing")
    assert not [r for r in caplog.records if "Retrying" in r.getMessage()]
