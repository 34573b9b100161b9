"""verifiers: the exported package, loaded and played by verifiers' own loader, env and harness."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spade_envs import suite
from spade_envs.pool import Pool

NAMES = ("StampDrawerEnv", "RollingDieEnv", "MapRoomEnv")
needs_verifiers = pytest.mark.skipif(
    importlib.util.find_spec("verifiers") is None, reason="verifiers is not installed"
)
needs_uv = pytest.mark.skipif(
    shutil.which("uv") is None, reason="verifiers' null harness needs uv, which is not here"
)


@pytest.fixture(scope="module")
def package(exported: Callable[..., Path]) -> Path:
    """A small pool, exported for verifiers."""
    hints = dict.fromkeys(NAMES, "") | {"StampDrawerEnv": "Take your time."}
    return exported("verifiers", "taken", hints)


def test_the_package_holds_a_locked_pool_and_a_project(package: Path) -> None:
    pool = Pool(package / "spade_pool" / "pool")
    assert pool.verify() == [] and len(pool) == 3
    assert '"verifiers>=0.4"' in (package / "pyproject.toml").read_text()
    assert "| `spade/MapRoom-v0` |" in (package / "README.md").read_text()
    compile((package / "spade_pool/__init__.py").read_text(), "__init__.py", "exec")


@pytest.fixture
def load(package: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Load the package's environment by its id, as `vf-eval` does."""
    monkeypatch.syspath_prepend(str(package))
    # The harness's script asks for Python's own shared objects, not for these tests' settings.
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    import verifiers.v1 as vf

    def loaded(**taskset: Any) -> Any:
        config = vf.resolve_env_config({"taskset": {"id": "spade-pool", **taskset}})
        return vf.load_environment(config)

    return loaded


@needs_verifiers
@pytest.mark.filterwarnings("default")
def test_tasks_are_the_environments_times_the_seeds(load: Callable[..., Any]) -> None:
    tasks = list(load(seeds=2, first_seed=5).taskset)
    assert len(tasks) == 6 and len({task.key for task in tasks}) == 6
    assert {task.data.seed for task in tasks} == {5, 6}
    assert {task.data.name.partition("#")[0] for task in tasks} == {
        f"spade/{name.removesuffix('Env')}-v0" for name in NAMES
    }
    assert [task.key for task in load(seeds=2, first_seed=5).taskset] == [t.key for t in tasks]
    skill = suite.specs()["MapRoomEnv"].skill
    alike = sum(suite.specs()[name].skill == skill for name in NAMES)
    assert len(list(load(skill=skill).taskset)) == 8 * alike < 24
    assert {task.data.name for task in load(seeds=1, hinted=True).taskset} == {
        "spade/StampDrawer-v0#0"
    }


def solver(steps: list[Any]) -> Callable[[dict[str, Any]], tuple[int, str]]:
    """A model that knows the solution, over the OpenAI protocol, one message a request."""

    def answer(body: dict[str, Any]) -> tuple[int, str]:
        place = sum(message["role"] == "assistant" for message in body["messages"])
        step = steps[place]
        if isinstance(step, str):
            text = f"I go on. \\boxed{{{step}}}"
        else:
            text = "\n".join(f"<tool_call>\n{json.dumps(plain(c))}\n</tool_call>" for c in step)
        return 200, spoken(text, stream=bool(body.get("stream")))

    return answer


def spoken(text: str, *, stream: bool) -> str:
    """A chat completion: whole, or as the one chunk of a stream."""
    said = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    part = {"index": 0, "finish_reason": "stop", "delta" if stream else "message": said}
    kind = "chat.completion.chunk" if stream else "chat.completion"
    body = {"id": "c", "object": kind, "created": 1, "model": "m", "choices": [part]}
    whole = json.dumps({**body, "usage": usage})
    return f"data: {whole}\n\ndata: [DONE]\n\n" if stream else whole


def plain(call: dict[str, Any]) -> dict[str, Any]:
    call = call.get("function", call)
    given = call["arguments"]
    return {
        "name": call["name"],
        "arguments": json.loads(given) if isinstance(given, str) else given,
    }


def play(env: Any, task: Any, url: str) -> Any:
    import verifiers.v1 as vf

    client = vf.EvalClientConfig(base_url=url, api_key_var="SPADE_NO_KEY")
    context = vf.ModelContext(model="stub-model", client=client)

    async def run() -> Any:
        async with env.serving():
            return await env.run_episode(task, context)

    return asyncio.run(run())


@needs_verifiers
@needs_uv
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", NAMES)
def test_an_episode_is_played_to_its_end(
    name: str, load: Callable[..., Any], chat_server: Any, solution_of: Callable[..., list[Any]]
) -> None:
    env = load(seeds=1, first_seed=7)
    task = next(one for one in env.taskset if name.removesuffix("Env") in one.data.name)
    chat_server.answer = solver(solution_of(name, 7))
    episode = play(env, task, chat_server.url)
    assert episode.ok, episode.errors
    (trace,) = episode.traces
    assert trace.rewards["episode_return"].score == 1.0
    assert trace.metrics["solved"] == 1.0
    assert trace.metrics["messages"] == len(chat_server.asked)
    first = chat_server.asked[0]["messages"][-1]["content"]
    text = first if isinstance(first, str) else first[0]["text"]
    assert ("<tools>" in text) == (name == "MapRoomEnv")
    assert re.search(r"boxed|tool_call", text)
    assert trace.metrics.get("credit") == (1.0 if name == "MapRoomEnv" else None)


@needs_verifiers
@needs_uv
@pytest.mark.filterwarnings("default")
def test_a_limit_truncates_and_a_wrong_answer_pays_nothing(
    load: Callable[..., Any], chat_server: Any, solution_of: Callable[..., list[Any]]
) -> None:
    env = load(seeds=1, first_seed=7, max_turns=1)
    task = next(one for one in env.taskset if "MapRoom" in one.data.name)
    chat_server.answer = solver(solution_of("MapRoomEnv", 7))
    episode = play(env, task, chat_server.url)
    assert episode.ok, episode.errors
    trace = episode.traces[0]
    assert trace.rewards["episode_return"].score == 0.0 and trace.metrics["solved"] == 0.0
    assert 0.0 < trace.metrics["credit"] < 1.0 and len(chat_server.asked) == 1
