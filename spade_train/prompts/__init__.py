"""What the model is asked, in both of its roles.

`full` explains the contract to a model that can read; `compact` is what the embedded policy was
raised on. Leaving out a document or the memory leaves out that section and changes nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from spade_runtime.spec import Kind
from spade_train.analysis.levers import levers
from spade_train.memory import MemoryRecord, verdict
from spade_train.prompts.templates import STYLES, Message, Prompt, Style, load, versions

__all__ = [
    "STYLES",
    "DesignerContext",
    "Message",
    "Prompt",
    "Style",
    "agent_messages",
    "designer_messages",
    "fit_designer_messages",
    "hint_messages",
    "judge_messages",
    "versions",
]

# What the three levels ask for; the anchor of the reward is what really enforces it.
DIFFICULTY = {
    "easy": "easy: a good player without a hint wins about seven plays in ten",
    "medium": "medium: a good player without a hint wins about half of the plays",
    "hard": "hard: a good player without a hint wins about three plays in ten",
}
# The embedded policy reads a few words of a document, in a context of a thousand tokens.
COMPACT_DOCUMENT_WORDS = 12


@dataclass(frozen=True, slots=True)
class DesignerContext:
    """What a designer is told before it writes.

    Attributes:
        kind: game or tool_use.
        skill: the skill to train.
        document: text of a corpus document, None without the corpus.
        exemplars: frontier environments of the memory, best first.
        counterexamples: environments that were too easy or too hard.
        difficulty: easy, medium or hard.
        max_turns: the run's limit of turns.
    """

    kind: Kind
    skill: str
    document: str | None = None
    exemplars: tuple[MemoryRecord, ...] = ()
    counterexamples: tuple[MemoryRecord, ...] = ()
    difficulty: str = "medium"
    max_turns: int = 20


def designer_messages(style: Style, context: DesignerContext) -> list[Message]:
    """Return the prompt for one design."""
    return load(style, f"designer_{context.kind}").messages(
        {
            "skill": context.skill,
            "difficulty": DIFFICULTY.get(context.difficulty, context.difficulty),
            "max_turns": str(context.max_turns),
            "document": _document(style, context.document),
            "memory": _memory(style, context),
        }
    )


def fit_designer_messages(
    style: Style,
    context: DesignerContext,
    count_tokens: Callable[[list[Message]], int],
    limit: int,
) -> tuple[list[Message], DesignerContext]:
    """Return the prompt and what is left of its context so that it has at most `limit` tokens.

    Exemplars are given whole or not at all, the least regretted one leaving first; then
    counter-examples leave, and at last the document is halved until it fits.

    Raises:
        ValueError: even the bare prompt is too long.
    """
    while True:
        messages = designer_messages(style, context)
        size = count_tokens(messages)
        if size <= limit:
            return messages, context
        smaller = _smaller(context)
        if smaller is None:
            raise ValueError(
                f"the designer's prompt has {size} tokens without document and memory, "
                f"and {limit} fit; raise context_tokens or lower designer_max_tokens"
            )
        context = smaller


def _smaller(context: DesignerContext) -> DesignerContext | None:
    if context.exemplars:
        return replace(context, exemplars=context.exemplars[:-1])
    if context.counterexamples:
        return replace(context, counterexamples=context.counterexamples[:-1])
    if context.document is not None:
        words = context.document.split()
        half = len(words) // 2
        return replace(context, document=" ".join(words[:half]) if half >= 8 else None)
    return None


def hint_messages(
    style: Style,
    kind: Kind,
    source: str,
    title: str,
    *,
    rejected: Sequence[tuple[str, str]] = (),
) -> list[Message]:
    """Return the prompt for a hint.

    Args:
        style: of the prompt.
        kind: game or tool_use.
        source: the environment's code.
        title: its title.
        rejected: hints that were refused so far, with the reason.
    """
    section = load(style, "section_rejected")
    refused = "".join(section.text({"hint": hint, "reason": reason}) for hint, reason in rejected)
    return load(style, f"hint_{kind}").messages(
        {"source": source.strip(), "title": title, "rejected": refused.rstrip("\n")}
    )


def agent_messages(style: Style, observation: str, *, kind: Kind = "game") -> list[Message]:
    """Return the messages that begin an episode; a hint stands in the observation already."""
    return load(style, f"agent_{kind}").messages({"observation": observation})


def judge_messages(source: str, *, style: Style = "full") -> list[Message]:
    """Return the prompt by which a judge looks for criteria that no tool chain reaches."""
    return load(style, "judge").messages({"source": source.strip()})


def _document(style: Style, document: str | None) -> str:
    if document is None:
        return ""
    if style == "compact":
        document = " ".join(document.split()[:COMPACT_DOCUMENT_WORDS])
    return load(style, "section_document").text({"document": document.strip()})


def _memory(style: Style, context: DesignerContext) -> str:
    entries = "".join(
        _entry(style, "section_exemplar", record) for record in context.exemplars
    ) + "".join(
        _entry(style, "section_counterexample", record) for record in context.counterexamples
    )
    return load(style, "section_memory").text({"entries": entries}) if entries else ""


def _entry(style: Style, section: str, record: MemoryRecord) -> str:
    regret = 0.0 if record.regret is None else record.regret
    full = style == "full"
    return load(style, section).text(
        {
            "title": " ".join(record.title.split()),
            "verdict": verdict(record),
            "win_rate": f"{record.win_rate:.2f}" if full else _tenths(record.win_rate),
            "regret": f"{regret:+.2f}" if full else _tenths(regret),
            "source": record.source.strip(),
            "levers": _levers(style, record.source),
        }
    )


def _levers(style: Style, source: str) -> str:
    """Return the numbers that set a source's difficulty, as the style says them."""
    found = levers(source)
    if style == "compact":
        return " ".join(f"{name} {value:g}" for name, value in found.items())
    described = ", ".join(f"{name} = {value:g}" for name, value in found.items())
    return f" (it had {described})" if described else ""


def _tenths(value: float) -> str:
    """Return a number between -1 and 1 as a whole number of tenths: one small token."""
    return str(round(10 * value))
