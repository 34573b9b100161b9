"""Designers that misbehave, and pools that come out all the same."""

import pytest

from spade_train.corpus import Corpus
from spade_train.errors import PolicyRefused, PolicyUnavailable
from spade_train.ledger import Ledger
from spade_train.memory import Memory, MemoryRecord
from spade_train.policies.openai import Endpoint, OpenAIPolicy
from spade_train.policies.scripted import ScriptedPolicy
from spade_train.presets import resolve
from spade_train.regeneration import Designer

pytestmark = pytest.mark.usefixtures("isolation")


@pytest.fixture(scope="module")
def judge(validator):
    from spade_train.assemble import TrainingJudge

    return TrainingJudge(validator, 0.25)


@pytest.fixture
def designer(judge):
    def make(script, corpus=None):
        return Designer(ScriptedPolicy(script), judge, corpus, Ledger())

    return make


def config(words, **changes):
    values = {"context_tokens": 60_000, "designer_max_tokens": 5000, "environments": 2, **changes}
    return resolve("tiny", overrides=words("unused", **values))


def is_hint(messages):
    return messages[-1]["content"].lstrip().lower().startswith("hint")


def fenced(source):
    return f"Here:\n```python\n{source}```"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "the answer is empty"),
        ("<think>I should write a class", "only thinking"),
        ("I would rather not.", "no code block"),
        ("```python\nclass AEnv:", "not closed"),
    ],
)
def test_answers_without_code_are_recorded_with_the_reason(designer, words, text, reason):
    made, _ = designer(lambda m, r: text).regenerate(config(words), 0, Memory(), 0, 0)
    assert made.pool == []
    assert made.acceptance == 0.0
    assert len(made.tries) == 2 * 3
    for attempt in made.tries:
        line = attempt.to_json()
        assert reason in line["reason"]
        assert line["verdict"] == "rejected"
        assert line["raw_text_if_no_code"] == text
        assert line["findings"] == []


def test_code_of_a_megabyte_is_refused_and_the_next_try_counts(designer, words, sources):
    def script(messages, rng):
        if is_hint(messages):
            return "Mind the length."
        return fenced("x = 1\n" * 200_000) if rng.random() < 0.6 else fenced(sources[0])

    conf = config(words, environments=4, designer_tries=5)
    made, _ = designer(script).regenerate(conf, 0, Memory(), 0, 0)
    codes = [[f.code for f in a.report.findings] for a in made.tries if not a.accepted]
    assert codes
    assert set(map(tuple, codes)) == {("SPD002",)}
    assert made.pool


def test_each_slot_has_five_tries_with_a_fresh_document_each(designer, words, tmp_path, sources):
    documents = tmp_path / "corpus.jsonl"
    documents.write_text(
        "".join(f'{{"id": "d{i}", "text": "document number {i}"}}\n' for i in range(40))
    )
    corpus = Corpus.open([str(documents)], max_words=50)
    seen = []

    def script(messages, rng):
        if is_hint(messages):
            return "Mind the length."
        seen.append(messages[-1]["content"])
        return fenced(sources[0]) if len(seen) > 7 else "no"

    conf = config(words, designer_tries=5)
    made, drawn = designer(script, corpus).regenerate(conf, 0, Memory(), 0, 0)
    assert [a.number for a in made.tries] == [0, 0, 1, 1, 2, 2, 3, 3, 4]
    assert len({a.document_id for a in made.tries}) == 9
    assert drawn == 9
    assert [design.slot for design in made.pool] == [1, 0][::-1]
    again, drawn = designer(script, corpus).regenerate(conf, 1, Memory(), drawn, 0)
    assert not {a.document_id for a in again.tries} & {a.document_id for a in made.tries}


def test_a_hint_that_gives_the_answer_away_is_written_again_with_the_reason(designer, words):
    asked = []
    source = LEAKY

    def script(messages, rng):
        if not is_hint(messages):
            return fenced(source)
        asked.append(messages[-1]["content"])
        told = "Say sesame, lantern, thistle, marble, orchid, pepper, saddle or walnut."
        return told if len(asked) == 1 else "Add up the letters of words that you know."

    made, _ = designer(script).regenerate(config(words, environments=1), 0, Memory(), 0, 0)
    attempt = made.tries[-1]
    assert attempt.accepted, attempt.report.findings
    assert len(asked) >= 2
    assert any("gives the answer away" in reason for _, reason in attempt.hints_refused)
    assert "sesame" in asked[1]
    assert made.pool[0].hint == "Add up the letters of words that you know."


@pytest.mark.parametrize(("trained", "temperature"), [(False, 0.2), (True, 0.9)])
def test_hints_that_are_trained_are_sampled_as_the_loss_takes_them(
    judge, words, sources, trained, temperature
):
    class Noting(ScriptedPolicy):
        def generate(self, prompts, sampling, seeds):
            asked.append(sampling.temperature)
            return super().generate(prompts, sampling, seeds)

    asked = []
    policy = Noting(lambda m, _: "Mind the length." if is_hint(m) else fenced(sources[0]))
    conf = config(words, environments=1, train_hints=trained, hint_temperature=0.2, temperature=0.9)
    Designer(policy, judge, None, Ledger()).regenerate(conf, 0, Memory(), 0, 0)
    assert asked[0] == 0.9 and set(asked[1:]) == {temperature}


@pytest.mark.parametrize("hint", ["", "word " * 5000, "<think>hm"])
def test_hints_that_cannot_be_used_leave_the_design_without_one(designer, words, sources, hint):
    def script(messages, rng):
        return hint if is_hint(messages) else fenced(sources[0])

    conf = config(words, environments=1, hint_max_tokens=30_000)
    made, _ = designer(script).regenerate(conf, 0, Memory(), 0, 0)
    assert made.pool[0].hint is None
    assert len(made.tries[0].hints_refused) == conf.hint_tries
    # Without a hint there is no regret: the design can't be judged, and is paid as an invalid one.
    assert made.pool[0].outcome("paired").regret is None


def test_the_other_kind_of_environment_is_not_what_was_asked_for(designer, words, sources):
    conf = config(words, setting="tools", environments=1)
    made, _ = designer(lambda m, r: fenced(sources[0])).regenerate(conf, 0, Memory(), 0, 0)
    assert made.pool == []
    assert {a.reason for a in made.tries} == {"a game environment where tool_use was asked"}


def test_copies_are_recognised_within_the_pool_and_against_the_memory(designer, words, sources):
    memory = Memory()
    memory.add(MemoryRecord("f" * 64, "old", sources[0], None, "game", "x", 0.5, 0.1, 0.1, 0))

    def script(messages, rng):
        return "Mind the length." if is_hint(messages) else fenced(sources[0])

    made, _ = designer(script).regenerate(config(words), 0, memory, 0, 0)
    first, second = made.tries
    assert first.duplicate_of == "f" * 64
    assert second.duplicate_of == first.report.sha256


def test_at_most_one_invalid_try_a_slot_is_paid(designer, words, sources):
    def script(messages, rng):
        if is_hint(messages):
            return "Mind the length."
        return fenced(sources[0]) if rng.random() < 0.4 else "no"

    conf = config(words, environments=6, invalid_reward=0.0, designer_tries=5)
    made, _ = designer(script).regenerate(conf, 0, Memory(), 0, 0)
    failed = {a.slot for a in made.tries if not a.accepted}
    assert sorted(d.slot for d in made.invalid) == sorted(failed)
    assert all(not d.valid for d in made.invalid)
    none = config(words, environments=6, invalid_reward="none", designer_tries=5)
    made, _ = designer(script).regenerate(none, 0, Memory(), 0, 0)
    assert made.invalid == []


def test_prompts_differ_only_in_what_an_ablation_takes_away(designer, words, tmp_path, sources):
    documents = tmp_path / "c.jsonl"
    documents.write_text('{"id": "d", "text": "about owls"}\n')
    corpus = Corpus.open([str(documents)], max_words=50)
    memory = Memory()
    skill = resolve("tiny").skill_pool[0]
    memory.add(MemoryRecord("f" * 64, "old owl", sources[0], None, "game", skill, 0.5, 0.3, 0.1, 0))
    prompts = {}
    for ablation in ("none", "no_corpus", "no_memory"):
        seen = []

        def script(messages, rng, seen=seen):
            seen.append(messages)
            return "no"

        conf = config(words, environments=1, designer_tries=1, ablation=ablation)
        own = corpus if conf.use_corpus else None
        designer(script, own).regenerate(conf, 0, memory, 0, 0)
        prompts[ablation] = "\n".join(m["content"] for m in seen[0])
    assert "about owls" in prompts["none"]
    assert "old owl" in prompts["none"]
    assert "about owls" not in prompts["no_corpus"]
    assert "old owl" in prompts["no_corpus"]
    assert "about owls" in prompts["no_memory"]
    assert "old owl" not in prompts["no_memory"]
    words_of = {name: set(text.split()) for name, text in prompts.items()}
    assert words_of["no_corpus"] < words_of["none"]
    assert words_of["no_memory"] < words_of["none"]


def test_limits_in_tokens_are_not_held_against_bytes(designer, words, tmp_path, sources):
    text = "Levers and ropes lift weights. " * 120
    documents = tmp_path / "c.jsonl"
    documents.write_text(f'{{"text": "{text}"}}\n')
    seen = []

    def script(messages, rng):
        seen.append(messages[-1]["content"])
        return fenced(sources[0]) if len(seen) == 1 else "Mind the length."

    full = {"prompt_style": "full", "corpus_max_words": 4000, "designer_max_tokens": 1000}
    conf = config(words, environments=1, context_tokens=6000, hint_max_tokens=5200, **full)
    own = Corpus.open([str(documents)], max_words=4000)
    designer(script, own).regenerate(conf, 0, Memory(), 0, 0)
    assert text.strip() in seen[0]
    assert len(seen[0].encode()) > 5000
    assert len(seen[1].encode()) > 800  # the hint was asked for


@pytest.fixture
def remote(judge, chat_server, chat_body):
    """A designer behind a URL on this machine: answer(prompt) gives a status and a text."""

    def make(answer, retries=0):
        def reply(body):
            status, text = answer(body["messages"][-1]["content"])
            return status, chat_body(text) if status == 200 else text

        chat_server.answer = reply
        endpoint = Endpoint(chat_server.url, "m", concurrency=1, retries=retries, pause=0.01)
        return Designer(OpenAIPolicy(endpoint), judge, None, Ledger())

    return make


def test_a_refused_prompt_is_a_failed_try_with_its_reason(remote, words, sources):
    prompts = []

    def answer(prompt):
        if prompt.lstrip().lower().startswith("hint"):
            return 400, "no hints"
        prompts.append(prompt)
        return (400, "policy of the house") if len(prompts) == 1 else (200, fenced(sources[0]))

    conf = config(words, invalid_reward=0.0)
    made, _ = remote(answer).regenerate(conf, 0, Memory(), 0, 0)
    first, second, again = made.tries
    assert "HTTP 400: policy of the house" in first.to_json()["reason"]
    assert (first.slot, first.source, first.sample) == (0, None, None)
    assert [a.accepted for a in (second, again)] == [True, True]
    assert [d.slot for d in made.pool] == [0, 1]
    assert made.invalid == []  # a prompt that nobody answered is not a bad design
    assert all("no hints" in reason for a in (second, again) for _, reason in a.hints_refused)
    assert len(second.hints_refused) == conf.hint_tries


@pytest.mark.parametrize("environments", [1, 2])
def test_a_designer_that_refuses_every_prompt_ends_the_run(remote, words, environments):
    designer = remote(lambda prompt: (401, "wrong key"))
    with pytest.raises(PolicyRefused, match="HTTP 401: wrong key") as caught:
        designer.regenerate(config(words, environments=environments), 0, Memory(), 0, 0)
    assert len(caught.value.tries) == 2


def test_a_designer_that_gives_up_leaves_what_it_has_written(remote, words, sources):
    asked = []

    def answer(prompt):
        asked.append(prompt)
        return (200, fenced(sources[0])) if len(asked) < 4 else (500, "broken")

    conf = config(words, environments=5, hinted_plays=0, objective="anchor")
    with pytest.raises(PolicyUnavailable, match="HTTP 500") as caught:
        remote(answer).regenerate(conf, 0, Memory(), 0, 0)
    assert [a.slot for a in caught.value.tries] == [0, 1, 2]
    assert all(a.source for a in caught.value.tries)


LEAKY = '''class DoorEnv(TextEnv):
    """Open the door with the word."""

    skill = "memory_recall"
    max_turns = 1
    WORDS = ("sesame", "lantern", "thistle", "marble", "orchid", "pepper", "saddle", "walnut")

    def reset(self, seed=None):
        self.rng = random.Random(seed)
        self.word = self.rng.choice(self.WORDS)
        self.clue = sum(map(ord, self.word))
        return f"A door asks for a word. Its letters add up to {self.clue}.", {}

    def step(self, action):
        won = action.strip() == self.word
        return ("It opens." if won else "It stays shut."), float(won), True, False, {}

    def solution(self):
        return [self.word]
'''
