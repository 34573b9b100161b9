"""`SpadeEnv`: one environment in the sandbox, behind Gymnasium's interface."""

from __future__ import annotations

from typing import Any

import gymnasium
from gymnasium.utils import EzPickle

from spade_envs.arguments import TEXT_MAX, checked_options, checked_turns, chosen_hint
from spade_envs.references import resolve
from spade_envs.shared import shared_pool
from spade_envs.spaces import UnicodeText
from spade_runtime.errors import UsageError
from spade_runtime.literals import too_deep
from spade_runtime.messages import with_hint
from spade_runtime.sandbox.facilities import check_level
from spade_runtime.sandbox.session import EnvSession
from spade_runtime.seeds import SEED_END, checked_seed
from spade_runtime.spec import EnvSpec, IsolationLevel

OPTIONS = ("hint", "max_turns")


class SpadeEnv(gymnasium.Env[str, str], EzPickle):
    """One instance of an environment class, in a child process that can do no harm.

    The child starts at the first `reset`, in the sandbox that the environments of a process share.
    `step` takes the agent's *message*: text, an OpenAI message or a list of tool calls.

    Args:
        source: `suite:<ClassName>`, or the text of a source.
        path: or a file.
        pool: or a pool's directory, with
        sha256: the hash of a source in it.
        max_turns: a limit in messages below the class's own.
        render_mode: None or `ansi`.
        level: isolation: `strict`, `best_effort`, or `none` for code that you trust.

    Attributes:
        observation_space: `UnicodeText`.
        action_space: `UnicodeText`; structured calls are taken as well.

    >>> env = SpadeEnv("suite:RollingDieEnv")
    >>> env.reset(seed=7)[1]["spade"]["turn"], env.step("hm")[4]["spade"]["turn"]
    (0, 1)
    >>> env.close()
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 4}

    def __init__(
        self,
        source: str | None = None,
        *,
        path: str | None = None,
        pool: str | None = None,
        sha256: str | None = None,
        max_turns: int | None = None,
        render_mode: str | None = None,
        level: IsolationLevel = "strict",
    ) -> None:
        EzPickle.__init__(
            self,
            source,
            path=path,
            pool=pool,
            sha256=sha256,
            max_turns=max_turns,
            render_mode=render_mode,
            level=level,
        )
        check_level(level)
        if render_mode not in (None, "ansi"):
            raise UsageError(f"render_mode is None or 'ansi', not {render_mode!r}")
        self.observation_space = UnicodeText(TEXT_MAX)
        self.action_space = UnicodeText(TEXT_MAX)
        self.render_mode = render_mode
        self._reference = {"source": source, "path": path, "pool": pool, "sha256": sha256}
        self._max_turns = checked_turns(max_turns)
        self._level = level
        self._session: EnvSession | None = None
        self._hint: str | None = None  # the environment's own, once it was asked for
        self._shown = ""

    @property
    def session(self) -> EnvSession:
        """The session behind this environment, opened if it was not.

        Raises:
            InvalidEnvironment: the static gates refuse the source.
            EnvFault: the module does not load.
            HostError: the machine can't isolate.
        """
        if self._session is None:
            found = resolve(**self._reference)
            self._session = shared_pool(self._level).open(found.text)
        return self._session

    @property
    def manifest(self) -> EnvSpec:
        """The environment's own manifest (`env.spec` is Gymnasium's)."""
        return self.session.spec

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Begin an episode.

        Args:
            seed: determines the task, from 0 to 2^31 - 1; None draws one from `np_random`.
            options: `hint`: a text, added to the first observation as its last block, or True for
                the hint that comes with the environment: of the suite, of the pool's manifest, or
                beside its file as `<stem>.hint.txt`; `max_turns`: a limit for this episode.

        Returns:
            The first observation and `info`; a tool-use environment's schemas stand in
            `info["spade"]["tools"]`.

        Raises:
            EnvFault: the environment failed; it is its designer's fault.
            UsageError: a seed or option that can't be, or an option that nobody knows.
        """
        # All that can be refused is so before anything changes.
        seed = None if seed is None else checked_seed(seed)
        options = checked_options(options, OPTIONS)
        hint = chosen_hint(options.get("hint"), self._reference)
        limit = checked_turns(options.get("max_turns", self._max_turns))
        super().reset(seed=seed)
        task = int(self.np_random.integers(SEED_END)) if seed is None else seed
        session = self.session
        (result,) = session.reset([task], max_turns=limit)
        if session.faults[0] is not None:
            raise session.faults[0]
        observation = with_hint(result.observation, hint)
        self._shown = observation
        return observation, result.info

    def step(self, action: Any) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Take the agent's message.

        A fault of the environment truncates the episode; `info["spade"]["fault"]` says what it was.

        Raises:
            EpisodeOver: the episode has ended; call `reset`.
            UsageError: the message is no text and no calls, or does not encode.
        """
        (result,) = self.session.step([action])
        turn = result.info["spade"]["turn"]
        fault = result.info["spade"]["fault"]
        answer = f"[fault {fault['code']}] {fault['message']}" if fault else result.observation
        if self.render_mode == "ansi":
            said = "(nested too deep to show)" if too_deep(action) else action
            self._shown = f"[{turn}] > {said}\n{answer}"
        return result.observation, result.reward, result.terminated, result.truncated, result.info

    def render(self) -> str | None:
        """The last exchange as text, in `ansi` mode; control characters are made visible."""
        return printable(self._shown) if self.render_mode == "ansi" else None

    def close(self) -> None:
        """End the child; may be called twice."""
        if self._session is not None:
            self._session.close()
            self._session = None


def printable(text: str) -> str:
    r"""Text that can be printed on a terminal without the terminal doing what it says.

    >>> printable("a\x1b[2Jb\n")
    'a\\x1b[2Jb\n'
    """
    return "".join(
        letter if letter in "\n\t" or letter.isprintable() else ascii(letter)[1:-1]
        for letter in text
    )
