"""One regeneration: documents and memory in, validated environments with hints out.

For each slot: a prompt with a fresh document, the designer's answer, its code, the validator's
verdict; up to `designer_tries` times. Then a hint for each accepted environment, written again
while it gives the answer away.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Protocol

from spade_runtime.spec import Finding, ValidationReport
from spade_train.analysis.duplicates import source_key
from spade_train.config import RunConfig
from spade_train.corpus import Corpus
from spade_train.designer import extract_source
from spade_train.hints import clean_hint, judge_hint
from spade_train.ledger import Ledger
from spade_train.memory import Memory
from spade_train.policies.base import Generation, Policy, Sampling
from spade_train.population import Design
from spade_train.prompts import (
    DesignerContext,
    Message,
    fit_designer_messages,
    hint_messages,
)
from spade_train.seeds import derive
from spade_train.skills import rotation, slot_skills
from spade_train.tokens import Conversation, check_sample

# Text without code is kept in the records up to this length.
SHOWN_CHARS = 4000


class Judge(Protocol):
    """The part of `spade_runtime.validation.Validator` that a regeneration uses."""

    def validate(self, source: str, *, hint: str | None = None) -> ValidationReport:
        """Return the verdict on a source, with its hint where one is given."""
        ...


@dataclass(slots=True)
class Try:
    """One answer of the designer, with what became of it: a line of `designs.jsonl`."""

    step: int
    slot: int
    number: int
    skill: str
    document_id: str | None
    exemplars: tuple[str, ...]
    text: str
    sample: Conversation | None
    tokens: int
    source: str | None = None
    reason: str = ""
    report: ValidationReport | None = None
    title: str = ""
    hint: str | None = None
    hints_refused: list[tuple[str, str]] = field(default_factory=list)
    hint_sample: Conversation | None = None
    duplicate_of: str | None = None

    @property
    def accepted(self) -> bool:
        """Whether the validator accepted its source, and of the kind that was asked for."""
        return self.report is not None and self.report.verdict == "accepted" and not self.reason

    def to_json(self, kind: str) -> dict[str, Any]:
        """Return the line of `designs.jsonl`."""
        findings: Sequence[Finding] = self.report.findings if self.report else ()
        return {
            "step": self.step,
            "slot": self.slot,
            "try": self.number,
            "kind": kind,
            "skill": self.skill,
            "title": self.title,
            "sha256": self.report.sha256 if self.report else None,
            "source": self.source,
            "hint": self.hint,
            "hints_refused": [list(pair) for pair in self.hints_refused],
            "verdict": "accepted" if self.accepted else "rejected",
            "reason": self.reason,
            "findings": [
                {k: getattr(f, k) for k in ("code", "severity", "message", "gate", "line")}
                for f in findings
            ],
            "document_id": self.document_id,
            "tokens": self.tokens,
            "exemplars": list(self.exemplars),
            "duplicate_of": self.duplicate_of,
            "raw_text_if_no_code": None if self.source else self.text[:SHOWN_CHARS],
        }


@dataclass(frozen=True, slots=True)
class Regeneration:
    """What a regeneration brought.

    Attributes:
        pool: the accepted environments, by slot.
        invalid: at most one invalid try a slot, where such tries are paid.
        tries: all of them, in order.
    """

    pool: list[Design]
    invalid: list[Design]
    tries: list[Try]

    @property
    def acceptance(self) -> float | None:
        """Accepted tries over tries."""
        if not self.tries:
            return None
        return sum(attempt.accepted for attempt in self.tries) / len(self.tries)


@dataclass(slots=True)
class Designer:
    """Writes pools of environments.

    Attributes:
        policy: writes the designs and hints.
        judge: the validator.
        corpus: documents, None for the ablation without.
        ledger: charged under `designer` and `hint`.
        threads: validations side by side.
        on_try: told of each finished try, for a progress bar.
    """

    policy: Policy
    judge: Judge
    corpus: Corpus | None
    ledger: Ledger
    threads: int = 2
    on_try: Callable[[Try], None] = lambda _: None

    def regenerate(
        self, config: RunConfig, step: int, memory: Memory, documents: int, version: int
    ) -> tuple[Regeneration, int]:
        """Write a whole pool.

        Args:
            config: as it holds at this step.
            step: the loop's step.
            memory: of environments that were played.
            documents: how many documents were drawn so far.
            version: updates that the weights have seen.

        Returns:
            The regeneration, and how many documents are drawn now.
        """
        skills = slot_skills(
            rotation(
                config.skill_pool, config.skills_per_regeneration, config.regenerate_every, step
            ),
            config.environments,
        )
        tries: list[Try] = []
        accepted: dict[int, Try] = {}
        for number in range(config.designer_tries):
            slots = [slot for slot in range(config.environments) if slot not in accepted]
            if not slots:
                break
            contexts = []
            for slot in slots:
                contexts.append(self._context(config, skills[slot], memory, documents))
                documents += self.corpus is not None
            fresh = self._write(config, step, number, slots, contexts)
            self._judge(config, fresh)
            tries += fresh
            accepted.update({attempt.slot: attempt for attempt in fresh if attempt.accepted})
        self._hint(config, step, list(accepted.values()))
        _mark_duplicates(list(accepted.values()), memory)
        pool = [self._design(config, accepted[s], version, True) for s in sorted(accepted)]
        return Regeneration(pool, self._invalid(config, tries, version), tries), documents

    # -- designs -------------------------------------------------------------------------------

    def _context(
        self, config: RunConfig, skill: str, memory: Memory, documents: int
    ) -> tuple[list[Message], DesignerContext, str | None]:
        document = self.corpus.draw(config.seed, documents) if self.corpus else None
        remember = config.use_memory
        context = DesignerContext(
            kind=config.kind,
            skill=skill,
            document=document.text if document else None,
            exemplars=tuple(memory.exemplars(skill, config.exemplars)) if remember else (),
            counterexamples=(
                tuple(memory.counterexamples(skill, config.counterexamples)) if remember else ()
            ),
            difficulty=config.difficulty,
            max_turns=config.max_turns,
        )
        # A document of megabytes is cut by words already; what is left fits or leaves.
        messages, context = fit_designer_messages(
            config.prompt_style,
            context,
            lambda m: len(self.policy.encode_chat(m)),
            config.context_tokens - config.designer_max_tokens,
        )
        return messages, context, document.id if document else None

    def _write(
        self,
        config: RunConfig,
        step: int,
        number: int,
        slots: Sequence[int],
        contexts: Sequence[tuple[list[Message], DesignerContext, str | None]],
    ) -> list[Try]:
        sampling = Sampling(
            config.temperature, config.top_p, config.top_k, config.designer_max_tokens
        )
        seeds = [derive("designer", config.seed, step, slot, number) for slot in slots]
        prompts = [self.policy.encode_chat(messages) for messages, _, _ in contexts]
        replies = self._generate("designer", prompts, sampling, seeds)
        tries = []
        for slot, prompt, reply, (_, context, document) in zip(
            slots, prompts, replies, contexts, strict=True
        ):
            text = self.policy.reply_text(reply)
            found = extract_source(text, bare=config.prompt_style == "compact")
            tries.append(
                Try(
                    step=step,
                    slot=slot,
                    number=number,
                    skill=context.skill,
                    document_id=document,
                    exemplars=tuple(record.sha256 for record in context.exemplars),
                    text=text,
                    sample=self._sample(prompt, reply),
                    tokens=len(reply.token_ids),
                    source=found.source,
                    reason=found.reason,
                )
            )
        return tries

    def _judge(self, config: RunConfig, tries: Sequence[Try]) -> None:
        """Let the validator judge what has code; nothing is accepted unless it says so."""
        with_code = [attempt for attempt in tries if attempt.source is not None]

        def judge(attempt: Try) -> ValidationReport:
            return self.judge.validate(attempt.source or "")

        with self.ledger.timed("designer"), ThreadPoolExecutor(self.threads) as threads:
            for attempt, report in zip(with_code, threads.map(judge, with_code), strict=True):
                attempt.report = report
                if report.verdict != "accepted":
                    continue
                attempt.title = _title(attempt.source or "")
                if report.kind != config.kind:
                    attempt.reason = f"a {report.kind} environment where {config.kind} was asked"
        self.ledger.validated("designer", len(with_code))
        for attempt in tries:
            self.on_try(attempt)

    # -- hints ---------------------------------------------------------------------------------

    def _hint(self, config: RunConfig, step: int, accepted: Sequence[Try]) -> None:
        """Write a hint for each environment, anew while it is empty, long or gives all away."""
        if config.hinted_plays == 0:
            return
        sampling = Sampling(
            config.hint_temperature, config.top_p, config.top_k, config.hint_max_tokens
        )
        room = config.context_tokens - config.hint_max_tokens
        open_tries = list(accepted)
        for number in range(config.hint_tries):
            asked: list[tuple[Try, list[int]]] = []
            for attempt in open_tries:
                messages = hint_messages(
                    config.prompt_style,
                    config.kind,
                    attempt.source or "",
                    attempt.title,
                    rejected=attempt.hints_refused,
                )
                prompt = self.policy.encode_chat(messages)
                if len(prompt) <= room:
                    asked.append((attempt, prompt))
                elif number == 0:
                    reason = f"the source leaves no room for a hint: {len(prompt)} tokens"
                    attempt.hints_refused.append(("", reason))
            if not asked:
                return
            seeds = [derive("hint", config.seed, step, a.slot, number) for a, _ in asked]
            replies = self._generate("hint", [p for _, p in asked], sampling, seeds)
            self._judge_hints(config, asked, replies)
            open_tries = [attempt for attempt in open_tries if attempt.hint is None]

    def _judge_hints(
        self,
        config: RunConfig,
        asked: Sequence[tuple[Try, list[int]]],
        replies: Sequence[Generation],
    ) -> None:
        texts = [self.policy.reply_text(reply) for reply in replies]

        def judge(pair: tuple[tuple[Try, list[int]], str]) -> Any:
            (attempt, _), text = pair
            cleaned = clean_hint(text)
            if cleaned.text is None:
                return cleaned
            report = self.judge.validate(attempt.source or "", hint=cleaned.text)
            return judge_hint(text, report.findings)

        with self.ledger.timed("hint"), ThreadPoolExecutor(self.threads) as threads:
            verdicts = list(threads.map(judge, zip(asked, texts, strict=True)))
        self.ledger.validated("hint", len(asked))
        for (attempt, prompt), text, reply, verdict in zip(
            asked, texts, replies, verdicts, strict=True
        ):
            if verdict.text is None:
                attempt.hints_refused.append((text[:SHOWN_CHARS], verdict.reason))
            else:
                attempt.hint = verdict.text
                attempt.hint_sample = self._sample(prompt, reply) if config.train_hints else None

    # -- what becomes of tries -----------------------------------------------------------------

    def _generate(
        self, role: str, prompts: list[list[int]], sampling: Sampling, seeds: list[int]
    ) -> list[Generation]:
        with self.ledger.timed(role):
            replies = self.policy.generate(prompts, sampling, seeds)
        self.ledger.generated(
            role,
            tokens_in=sum(map(len, prompts)),
            tokens_out=sum(len(reply.token_ids) for reply in replies),
            generations=len(prompts),
        )
        return replies

    def _sample(self, prompt: list[int], reply: Generation) -> Conversation | None:
        if not self.policy.trainable:
            return None
        sample = Conversation()
        sample.hear(prompt)
        sample.speak(reply)
        check_sample(sample, self.policy)
        return sample

    def _design(self, config: RunConfig, attempt: Try, version: int, valid: bool) -> Design:
        return Design(
            made=attempt.step,
            slot=attempt.slot,
            skill=attempt.skill,
            kind=config.kind,
            sha256=(attempt.report.sha256 if attempt.report else None) or "",
            title=attempt.title,
            source=attempt.source or "",
            hint=attempt.hint,
            document=attempt.document_id,
            parents=attempt.exemplars,
            sample=attempt.sample,
            hint_sample=attempt.hint_sample,
            version=version,
            valid=valid,
        )

    def _invalid(self, config: RunConfig, tries: Sequence[Try], version: int) -> list[Design]:
        """Return the first invalid try of each slot, where invalid designs are paid."""
        if config.invalid_reward == "none":
            return []
        first: dict[int, Try] = {}
        for attempt in tries:
            if not attempt.accepted:
                first.setdefault(attempt.slot, attempt)
        return [self._design(config, first[slot], version, False) for slot in sorted(first)]


def _mark_duplicates(accepted: Sequence[Try], memory: Memory) -> None:
    """Say of which earlier environment, of this pool or the memory, a design is a copy."""
    seen: dict[str, str] = {}
    for attempt in accepted:
        source = attempt.source or ""
        own = (attempt.report.sha256 if attempt.report else None) or ""
        earlier = memory.duplicate_of(source)
        attempt.duplicate_of = seen.get(source_key(source)) or (earlier.sha256 if earlier else None)
        seen.setdefault(source_key(source), own)


def _title(source: str) -> str:
    """Return the title that an accepted source gives itself."""
    from spade_runtime.contract import read

    return read(source).title
