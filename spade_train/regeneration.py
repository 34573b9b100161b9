"""One regeneration: documents and memory in, validated environments with hints out.

For each slot: a prompt with a fresh document, the designer's answer, its code, the validator's
verdict; up to `designer_tries` times. A hint goes with the code, and is written again while it
gives the answer away.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

from spade_runtime.spec import ValidationReport
from spade_train.config import RunConfig
from spade_train.corpus import Corpus
from spade_train.designer import extract_source
from spade_train.errors import PolicyRefused, PolicyUnavailable
from spade_train.hints import clean_hint, leaks
from spade_train.ledger import Ledger
from spade_train.memory import Memory
from spade_train.policies.base import Generation, Policy, Sampling
from spade_train.policies.text import prompt_tokens
from spade_train.population import Design
from spade_train.prompts import (
    DesignerContext,
    Message,
    fit_designer_messages,
    hint_messages,
)
from spade_train.seeds import derive
from spade_train.skills import kind_of, rotation, slot_skills
from spade_train.tokens import Conversation, check_sample
from spade_train.tries import (
    SHOWN_CHARS,
    Regeneration,
    Try,
    mark_duplicates,
    read_title,
    spoken_title,
    without_leaks,
)


class Judge(Protocol):
    """The part of `spade_runtime.validation.Validator` that a regeneration uses."""

    def validate(self, source: str, *, hint: str | None = None) -> ValidationReport:
        """Return the verdict on a source, with its hint where one is given."""
        ...


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

        Raises:
            PolicyUnavailable: a designer behind a URL gave up; the tries until then come with it.
            PolicyRefused: it refused every prompt.
        """
        skills = slot_skills(
            rotation(
                config.skill_pool, config.skills_per_regeneration, config.regenerate_every, step
            ),
            config.environments,
        )
        tries: list[Try] = []
        try:
            documents = self._try(config, step, skills, memory, documents, tries)
            accepted = {attempt.slot: attempt for attempt in tries if attempt.accepted}
            for _ in range(config.hint_tries - 1):
                hintless = [attempt for attempt in accepted.values() if attempt.hint is None]
                self._write_hints(config, step, hintless)
                self._judge([attempt for attempt in hintless if attempt.hint is not None])
        except (PolicyUnavailable, PolicyRefused) as error:
            error.tries = tries
            raise
        mark_duplicates(list(accepted.values()), memory)
        pool = [self._design(accepted[s], version, True) for s in sorted(accepted)]
        return Regeneration(pool, self._invalid(config, tries, version), tries), documents

    # -- designs -------------------------------------------------------------------------------

    def _try(
        self,
        config: RunConfig,
        step: int,
        skills: Sequence[str],
        memory: Memory,
        documents: int,
        tries: list[Try],
    ) -> int:
        """Fill the slots, try by try; a try is put down as soon as it is written.

        Returns:
            How many documents are drawn now.
        """
        accepted: set[int] = set()
        for number in range(config.designer_tries):
            slots = [slot for slot in range(config.environments) if slot not in accepted]
            if not slots:
                break
            contexts = []
            for slot in slots:
                contexts.append(self._context(config, skills[slot], memory, documents))
                documents += self.corpus is not None
            fresh = self._write(config, step, number, slots, contexts, tries)
            with_code = [attempt for attempt in fresh if attempt.source is not None]
            # The first hint is written before the verdict, so that one validation serves both.
            self._write_hints(config, step, with_code)
            self._judge(with_code)
            for attempt in fresh:
                self.on_try(attempt)
            accepted.update(attempt.slot for attempt in fresh if attempt.accepted)
            last = number + 1 == config.designer_tries
            if all(attempt.refused for attempt in tries) and (last or len(tries) > 1):
                # Not what one prompt asks for: a wrong key, model or address.
                raise PolicyRefused(tries[0].reason)
        return documents

    def _context(
        self, config: RunConfig, skill: str, memory: Memory, documents: int
    ) -> tuple[list[Message], DesignerContext, str | None]:
        document = self.corpus.draw(config.seed, documents) if self.corpus else None
        remember = config.use_memory
        context = DesignerContext(
            kind=kind_of(skill),
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
            lambda m: prompt_tokens(self.policy, m),
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
        tries: list[Try],
    ) -> list[Try]:
        """Let each slot be written, and add what came to `tries`, also where the policy gave up."""
        sampling = Sampling(
            config.temperature, config.top_p, config.top_k, config.designer_max_tokens
        )
        seeds = [derive("designer", config.seed, step, slot, number) for slot in slots]
        prompts = [self.policy.encode_chat(messages) for messages, _, _ in contexts]

        def add(place: int, reply: Generation, refusal: str = "") -> Try:
            _, context, document = contexts[place]
            text = self.policy.reply_text(reply)
            found = extract_source(text, bare=config.prompt_style == "compact")
            attempt = Try(
                step=step,
                slot=slots[place],
                number=number,
                skill=context.skill,
                document_id=document,
                exemplars=tuple(record.sha256 for record in context.exemplars),
                text=text,
                sample=None if refusal else self._sample(prompts[place], reply),
                tokens=len(reply.token_ids),
                source=found.source,
                reason=refusal or found.reason,
                refused=bool(refusal),
            )
            tries.append(attempt)
            return attempt

        try:
            replies, refused = self._generate("designer", prompts, sampling, seeds)
        except PolicyUnavailable as error:
            for place in sorted(error.finished):
                add(place, error.finished[place])
            raise
        return [add(place, reply, refused.get(place, "")) for place, reply in enumerate(replies)]

    def _judge(self, tries: Sequence[Try]) -> None:
        """Let the validator judge code and hint together; it alone accepts.

        A hint that gives the answer away (SPD705) is taken off, and says nothing of the code.
        """

        def judge(attempt: Try) -> ValidationReport:
            return self.judge.validate(attempt.source or "", hint=attempt.hint)

        with self.ledger.timed("designer"), ThreadPoolExecutor(self.threads) as threads:
            reports = list(threads.map(judge, tries))
        self.ledger.validated("designer", len(tries))
        for attempt, report in zip(tries, reports, strict=True):
            if told := leaks(report.findings):
                reason = f"the hint gives the answer away: {told[0]}"
                attempt.hints_refused.append((attempt.hint or "", reason))
                attempt.hint = attempt.hint_sample = None
            attempt.report = without_leaks(report)
            if attempt.report.verdict != "accepted":
                attempt.hint = attempt.hint_sample = None
                continue
            attempt.title = read_title(attempt.source or "")
            if report.kind != attempt.kind:
                attempt.reason = f"a {report.kind} environment where {attempt.kind} was asked"

    # -- hints ---------------------------------------------------------------------------------

    def _write_hints(self, config: RunConfig, step: int, tries: Sequence[Try]) -> None:
        """Write a hint for each source; one that is empty or too long is refused at once."""
        if config.hinted_plays == 0:
            return
        # What is trained has to be sampled as the loss takes it: an importance weight of 1.
        temperature = config.temperature if config.train_hints else config.hint_temperature
        sampling = Sampling(temperature, config.top_p, config.top_k, config.hint_max_tokens)
        room = config.context_tokens - config.hint_max_tokens
        asked: list[tuple[Try, list[int]]] = []
        for attempt in tries:
            messages = hint_messages(
                config.prompt_style,
                attempt.kind,
                attempt.source or "",
                attempt.title or spoken_title(attempt.source or ""),
                rejected=attempt.hints_refused,
            )
            prompt = self.policy.encode_chat(messages)
            if (size := prompt_tokens(self.policy, messages)) <= room:
                asked.append((attempt, prompt))
            else:
                reason = f"the source leaves no room for a hint: {size} tokens"
                attempt.hints_refused.append(("", reason))
        seeds = [
            derive("hint", config.seed, step, a.slot, a.number, len(a.hints_refused))
            for a, _ in asked
        ]
        prompts = [prompt for _, prompt in asked]
        replies, refused = self._generate("hint", prompts, sampling, seeds)
        for place, ((attempt, prompt), reply) in enumerate(zip(asked, replies, strict=True)):
            if place in refused:
                attempt.hints_refused.append(("", refused[place]))
                continue
            text = self.policy.reply_text(reply)
            cleaned = clean_hint(text)
            attempt.hint = cleaned.text
            if cleaned.text is None:
                attempt.hints_refused.append((text[:SHOWN_CHARS], cleaned.reason))
            elif config.train_hints:
                attempt.hint_sample = self._sample(prompt, reply)

    # -- what becomes of tries -----------------------------------------------------------------

    def _generate(
        self, role: str, prompts: list[list[int]], sampling: Sampling, seeds: list[int]
    ) -> tuple[list[Generation], dict[int, str]]:
        """Return a reply a prompt, an empty one where it was refused, and why it was."""
        refused: dict[int, str] = {}
        with self.ledger.timed(role):
            try:
                replies = self.policy.generate(prompts, sampling, seeds)
            except PolicyRefused as error:
                refused = error.refused
                nothing = Generation([], [], "stop")
                replies = [error.finished.get(place, nothing) for place in range(len(prompts))]
        self.ledger.generated(
            role,
            tokens_in=sum(map(len, prompts)),
            tokens_out=sum(len(reply.token_ids) for reply in replies),
            generations=len(prompts),
        )
        return replies, refused

    def _sample(self, prompt: list[int], reply: Generation) -> Conversation | None:
        if not self.policy.trainable:
            return None
        sample = Conversation()
        sample.hear(prompt)
        sample.speak(reply)
        check_sample(sample, self.policy)
        return sample

    def _design(self, attempt: Try, version: int, valid: bool) -> Design:
        return Design(
            made=attempt.step,
            slot=attempt.slot,
            skill=attempt.skill,
            kind=attempt.kind,
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
        """Return the first invalid try of each slot, where invalid designs are paid.

        One that the judge left unjudged, or whose prompt was refused, is not the designer's fault:
        it is neither used nor paid.
        """
        if config.invalid_reward == "none":
            return []
        first: dict[int, Try] = {}
        for attempt in tries:
            if not attempt.accepted and not attempt.unjudged and not attempt.refused:
                first.setdefault(attempt.slot, attempt)
        return [self._design(first[slot], version, False) for slot in sorted(first)]
