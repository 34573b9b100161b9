"""`spade design` with a designer behind a URL: what was written before it gave up stays."""

import pytest

pytest.importorskip("torch")

from spade_train.designing import design  # noqa: E402
from spade_train.errors import PolicyRefused, PolicyUnavailable  # noqa: E402
from spade_train.presets import resolve  # noqa: E402

pytestmark = pytest.mark.usefixtures("isolation")


@pytest.mark.parametrize("status", [500, 401])
def test_designs_stay_where_the_designer_gave_up_and_no_folder_where_it_refused_all(
    words, tmp_path, lines, sources, chat_server, chat_body, status
):
    """With `Retry-After: 0` no try waits for the next one."""
    if status == 500:
        chat_server.script.append((200, {}, chat_body(f"```python\n{sources[0]}```")))
    chat_server.script += [(status, {"Retry-After": "0"}, "not now")] * 12
    external = {
        "ablation": "external_designer",
        "designer_url": chat_server.url,
        "designer_model": "m",
        "invalid_reward": "none",
        "environments": 2,
    }
    config = resolve("tiny", overrides=words("unused", **external))
    out = tmp_path / "out"
    with pytest.raises((PolicyUnavailable, PolicyRefused), match=f"HTTP {status}"):
        design(config, out)
    if status == 401:
        assert not out.exists()
    else:
        [kept] = lines(out / "designs.jsonl")
        assert kept["source"] == sources[0]
