"""Episodes for other programs: chat messages as JSON Lines, or a parquet table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

from spade_envs.episodes import Episode, json_line
from spade_runtime.errors import SpadeError, UsageError

ROWS = 1000  # in one row group of a table


def chat_row(episode: Episode) -> dict[str, Any]:
    """One episode as a conversation in OpenAI's form, with what came of it.

    It ends with the agent's last message, whoever recorded it: nobody answers what came after.

    What a training run reckoned it worth, by its return mode, stands apart from the rewards' sum:
    a return lies in [-1, 1], and in some modes is the last reward alone.
    """
    return {
        "messages": _spoken(episode.messages),
        "id": episode.id,
        "sha256": episode.sha256,
        "seed": episode.seed,
        "policy": episode.policy,
        "hint": episode.hint,
        "arm": _arm(episode),
        "solved": episode.solved,
        "reward_sum": episode.total,
        "episode_return": episode.episode_return,
        "turns": episode.turns,
    }


def _arm(episode: Episode) -> str:
    return episode.arm or ("unhinted" if episode.hint is None else "hinted")


def _spoken(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Messages up to the agent's last; all of them where it said nothing."""
    said = [place for place, one in enumerate(messages) if one.get("role") == "assistant"]
    return messages[: said[-1] + 1] if said else messages


def export_episodes(episodes: Iterable[Episode], path: Path) -> int:
    """Write episodes to a `.jsonl` file of conversations or a `.parquet` table.

    Returns:
        How many were written.

    Raises:
        UsageError: another ending, a file that is there already, or pyarrow is not installed.
        SpadeError: the file can't be written; what was begun is removed.
    """
    writers = {".jsonl": _write_chat, ".parquet": _write_parquet}
    if path.suffix not in writers:
        raise UsageError(f"{path}: the ending decides the form; it is .jsonl or .parquet")
    if path.exists():
        raise UsageError(f"{path} is there already; name another file")
    begun = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        count = writers[path.suffix](episodes, begun)
        begun.replace(path)
    except OSError as error:
        raise SpadeError(f"can't write {path}: {error.strerror or error}") from error
    finally:
        begun.unlink(missing_ok=True)
    return count


def _write_chat(episodes: Iterable[Episode], path: Path) -> int:
    count = 0
    with path.open("w", encoding="utf-8") as file:
        for episode in episodes:
            file.write(json_line(chat_row(episode)) + "\n")
            count += 1
    return count


def _write_parquet(episodes: Iterable[Episode], path: Path) -> int:
    try:
        arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ModuleNotFoundError as missing:
        raise UsageError(
            "a parquet table needs pyarrow; install it with: pip install pyarrow"
        ) from missing
    text, number = arrow.string(), arrow.float64()
    schema = arrow.schema(
        [("id", text), ("sha256", text), ("seed", arrow.int64()), ("policy", text), ("hint", text)]
        + [("step", arrow.int64()), ("arm", text), ("observations", arrow.list_(text))]
        + [("actions", arrow.list_(text)), ("rewards", arrow.list_(number)), ("messages", text)]
        + [("terminated", arrow.bool_()), ("truncated", arrow.bool_()), ("solved", arrow.bool_())]
        + [
            ("reward_sum", number),
            ("episode_return", number),
            ("turns", arrow.int64()),
            ("fault", text),
        ]
        + [("token_ids", arrow.list_(arrow.list_(arrow.int64())))]
    )
    count = 0
    with parquet.ParquetWriter(path, schema) as writer:
        for rows in _chunks(map(_flat, episodes), ROWS):
            try:
                table = arrow.Table.from_pylist(rows, schema=schema)
            except (ValueError, OverflowError) as error:
                raise UsageError(
                    f"a value in the episodes {count + 1} to {count + len(rows)} fits no column "
                    f"of a table ({error}); export them as .jsonl"
                ) from error
            writer.write_table(table)
            count += len(rows)
    return count


def _flat(episode: Episode) -> dict[str, Any]:
    """A row of the table; what has no fixed form is JSON text.

    A column holds UTF-8: halves of surrogate pairs are written as escapes.
    """
    row = episode.model_dump(exclude={"messages", "actions", "fault", "contract_version"})
    row["actions"] = [
        action if isinstance(action, str) else json_line(action) for action in episode.actions
    ]
    row["messages"] = json_line(episode.messages)
    row["arm"] = _arm(episode)
    row["fault"] = (episode.fault.code or episode.fault.kind) if episode.fault else None
    for name in ("id", "policy", "hint", "observations", "actions", "fault"):
        row[name] = _encodable(row[name])
    return row | {"reward_sum": episode.total, "turns": episode.turns}


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    return [_encodable(one) for one in value] if isinstance(value, list) else value


def _chunks(rows: Iterable[dict[str, Any]], size: int) -> Iterator[list[dict[str, Any]]]:
    steady = iter(rows)
    while chunk := list(islice(steady, size)):
        yield chunk
