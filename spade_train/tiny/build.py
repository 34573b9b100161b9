"""`spade tiny build`: the embedded policy from nothing, seeded.

Scripted play in the sandbox, then the tokenizer, then supervised training on designs, hints and
play. The folder appears whole or not at all.
"""

from __future__ import annotations

import json
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from spade_runtime.errors import UsageError
from spade_train.seeds import derive, environment_seeds
from spade_train.tiny.data import (
    Chat,
    design_chat,
    hint_chat,
    inkling,
    random_design,
    shuffled_meaning,
    spelled_out,
)
from spade_train.tiny.families import FAMILIES, Design, hint, source
from spade_train.tiny.lexicon import NEW_THEMES, THEMES
from spade_train.tiny.model import Shape, new_model, parameters
from spade_train.tiny.play import scripted_plays
from spade_train.tiny.tokenizer import END, PAD, build_tokenizer, shipped_templates

if TYPE_CHECKING:
    from spade_train.corpus import Corpus
    from spade_train.tiny.warmstart import Recipe, Row

HINTED_PLAYS, FREE_PLAYS = 16, 8
RIGHT = 0.97
DRILL_ROUNDS = 3
GAMES = [family for family in FAMILIES if family.kind == "game"]
WITHOUT_DOCUMENT = 0.15

Progress = Callable[[str, int, int, str], None]


class Opener(Protocol):
    """The part of `spade_runtime.SandboxPool` that scripted play needs."""

    def open(self, source: str, *, instances: int = 1) -> Any:
        """Return a session, usable as a context manager."""
        ...


@dataclass(frozen=True, slots=True)
class Built:
    """What a build gave.

    Attributes:
        folder: where it lies.
        parameters: of the model.
        vocabulary: tokens.
        losses: last mean loss per learned token, by purpose.
    """

    folder: Path
    parameters: int
    vocabulary: int
    losses: dict[str, float]


@dataclass(frozen=True, slots=True)
class Script:
    """Scripted play, one list of samples an environment.

    Attributes:
        easy: play of few rounds, all right, with the nearest rules only; the rule is told, by a
            hint or in place of the operation's word.
        drills: the same with all rules.
        plays: whole episodes of mixed quality.
    """

    easy: list[list[Chat]]
    drills: list[list[Chat]]
    plays: list[list[Chat]]


def scripted_chats(pool: Opener, environments: int, seed: int, progress: Progress) -> Script:
    """Play many environments: of four, one easy drill, one drill, two for whole episodes."""
    script = Script([], [], [])
    for number in range(environments):
        rng = random.Random(derive("tiny-play", seed, number))
        stage = (script.easy, script.drills, script.plays, script.plays)[number % 4]
        drill = stage is not script.plays
        design = random_design(rng, rng.choice(GAMES) if drill else None)
        # Where the rule is told the settings of the held-out environments occur as well: a token
        # that was never seen at all would mislead any play. No design and no free play has them.
        told = replace(design, theme=rng.choice(THEMES + NEW_THEMES))
        told = shuffled_meaning(told, rng, stage is script.easy)
        if drill:
            # Several rounds: with one, the rule stands at a fixed distance from the answer, and
            # that place is learned instead of the rule.
            told = replace(told, rounds=rng.randint(1, DRILL_ROUNDS)).within()
        right = 1.0 if drill else RIGHT
        text: str | None = hint(told, rng)
        form = number // 4 % 4
        if form == 0 and (drill or number // 16 % 2):
            # The rule itself stands where a word would. Reading it there is what makes the meaning
            # of a word a single thing to learn, in every family at once.
            told, text = replace(told, op=spelled_out(told.op)), None
        elif form == 1 and stage is script.drills:
            # The words' own meaning, so that there is a place for it in the network. What comes
            # later leaves but an inkling of it.
            told, text = replace(told, op=design.op, theme=design.theme).within(), None
        chats = _plays(pool, told, HINTED_PLAYS, rng, derive(seed, number), right, text)
        if not drill:
            right = inkling(design.op)
            chats += _plays(pool, design, FREE_PLAYS, rng, derive(seed, number, "free"), right)
        stage.append(chats)
        progress("scripted play", number + 1, environments, "environments")
    return script


def _plays(
    pool: Opener,
    design: Design,
    count: int,
    rng: random.Random,
    seed: int,
    right: float,
    text: str | None = None,
) -> list[Chat]:
    seeds = environment_seeds(count, "tiny", seed)
    with pool.open(source(design), instances=count) as session:
        plays = scripted_plays(session, seeds, rng, hint=text, right=right)
    return [Chat("play", play.messages, play.tools) for play in plays]


def build(
    out: Path,
    pool: Opener,
    corpus: Corpus,
    recipe: Recipe,
    *,
    shape: Shape | None = None,
    environments: int = 2400,
    progress: Progress,
) -> Built:
    """Build the policy into a folder.

    Args:
        out: the folder to write; must not exist, or be empty.
        pool: the sandbox.
        corpus: documents for the designer's prompts.
        recipe: of the training.
        shape: of the model.
        environments: environments of the scripted play.
        progress: is told (stage, done, all, unit or losses).

    Raises:
        UsageError: the folder holds something already.
    """
    if out.exists() and any(out.iterdir()):
        raise UsageError(f"{out} is not empty; give another folder with --out, or remove it")
    from spade_train.chat import ChatTemplate
    from spade_train.tiny.warmstart import train

    script = scripted_chats(pool, environments, recipe.seed, progress)
    documents = [corpus.draw(recipe.seed, number).text for number in range(len(corpus))]
    tokenizer = build_tokenizer(documents, shipped_templates())
    ids = {token: tokenizer.convert_tokens_to_ids(token) for token in (PAD, END)}
    model = new_model(len(tokenizer), shape or Shape(), recipe.seed, pad=ids[PAD], end=ids[END])
    rows = _Rows(ChatTemplate(tokenizer), script, documents, recipe)
    last: dict[str, float] = {}

    def report(step: int, losses: dict[str, float]) -> None:
        last.update(losses)
        shown = " ".join(f"{purpose} {loss:.3f}" for purpose, loss in sorted(losses.items()))
        progress("training", step + 1, recipe.steps, shown)

    train(model, rows, recipe, report)
    facts = {"recipe": asdict(recipe), "shape": asdict(shape or Shape()), "losses": last,
             "environments": environments, "parameters": parameters(model)}  # fmt: skip
    _write(out, model, tokenizer, facts)
    return Built(out, parameters(model), len(tokenizer), last)


class _Rows:
    """The samples of each step of the training."""

    def __init__(
        self,
        template: Any,
        script: Script,
        documents: Sequence[str],
        recipe: Recipe,
    ) -> None:
        from spade_train.tiny.warmstart import encode

        self.template = template
        self.documents = documents
        self.recipe = recipe
        self._easy, self._drills, self._plays = (
            self._forever([encode(template, chat) for one in group for chat in one])
            for group in (script.easy, script.drills, script.plays)
        )

    def _forever(self, rows: Sequence[Row]) -> Iterator[Row]:
        from spade_train.tiny.warmstart import shuffled

        return shuffled(rows, random.Random(derive("tiny-order", self.recipe.seed)))

    def __call__(self, step: int) -> list[Row]:
        from spade_train.tiny.warmstart import encode

        recipe = self.recipe
        if step < recipe.easy_steps:
            return [next(self._easy) for _ in range(recipe.drills)]
        rng = random.Random(derive("tiny-step", recipe.seed, step))
        drilling = step < recipe.drill_steps
        share = 3 if drilling else 1
        chats = [design_chat(self._document(rng), rng) for _ in range(recipe.designs // share)]
        chats += [hint_chat(rng) for _ in range(recipe.hints // share)]
        rows = [encode(self.template, chat) for chat in chats]
        rows += [next(self._plays) for _ in range(recipe.plays // share)]
        drills = 3 * recipe.drills // 4 if drilling else 0
        return rows + [next(self._drills) for _ in range(drills)]

    def _document(self, rng: random.Random) -> str | None:
        return None if rng.random() < WITHOUT_DOCUMENT else rng.choice(self.documents)


def _write(out: Path, model: Any, tokenizer: Any, facts: dict[str, Any]) -> None:
    """Write the folder beside its place, then move it there."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}-") as scratch:
        whole = Path(scratch) / "whole"
        model.save_pretrained(whole)
        tokenizer.save_pretrained(whole)
        (whole / "recipe.json").write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
        card = files("spade_train.tiny").joinpath("card.md").read_text(encoding="utf-8")
        (whole / "README.md").write_text(card, encoding="utf-8")
        for path in whole.iterdir():
            path.chmod(0o644)  # safetensors writes for its owner alone
        if out.exists():
            out.rmdir()
        shutil.move(whole, out)
