// The story: headline, key figures, two designs side by side, one environment with and without its hint.
function storySection(data) {
  const settings = data.settings;
  const facts = ["Run " + data.name];
  if (settings.preset && settings.preset !== "none") facts.push("preset " + settings.preset);
  if (settings.model && settings.model !== settings.preset) facts.push(settings.model);
  if (settings.setting) facts.push(words(settings.setting));
  if (settings.ablation && settings.ablation !== "none") facts.push("ablation " + words(settings.ablation));
  facts.push(data.stepsDone + (settings.steps ? " of " + settings.steps : "") + " steps");
  if (present(settings.seed)) facts.push("seed " + settings.seed);
  return h("section", { id: "story" },
    h("p", { class: "kicker" }, facts.map((fact) => h("span", {}, fact))),
    h("h1", {}, data.headline.title),
    h("p", { class: "detail-line" }, data.headline.detail),
    h("p", { class: "about" },
      "One model plays two roles. As the designer it writes small environments, real Python checked in a sandbox, and a hint for each. ",
      "As the agent it plays them without the hint and learns from its wins. ",
      "The designer is paid for environments that the agent wins about half of the time, and whose hint would still help, so they move along with what the agent can do."),
    data.figures.length ? h("dl", { class: "figures" }, data.figures.map(figure)) : null);
}

function figure(one) {
  const form = FORMS[one.form] || plain;
  const first = one.form === "percent" ? form(one.first).replace("\u00a0%", "") : form(one.first);
  const error = present(one.se) ? " ± " + (one.form === "percent" ? Math.round(100 * one.se) : one.se.toFixed(2)) : "";
  return h("div", {},
    h("dt", {}, one.label),
    h("dd", { class: "value" }, h("span", { class: "from" }, first),
      h("span", { class: "arrow", "aria-hidden": "true" }, "→"), h("span", { class: "hidden" }, " to "), h("span", {}, form(one.last))),
    h("dd", { class: "more" }, one.note + (error ? "; last " + form(one.last).replace("\u00a0%", "") + error : "")));
}

function designFacts(design, other) {
  const facts = [];
  for (const [name, value] of Object.entries(design.levers || {})) {
    facts.push(h("span", { class: other && other.levers[name] !== value ? "moved" : "" }, words(name) + " ", h("b", {}, plain(value))));
  }
  facts.push(h("span", {}, "won in ", h("b", {}, percent(design.win))));
  facts.push(h("span", {}, "regret ", h("b", {}, signed(design.regret))));
  return h("p", { class: "facts" }, facts);
}

function designPanel(design, other, label, open) {
  const moved = new Set(Object.keys(design.levers).filter((n) => other.levers[n] !== design.levers[n]));
  return h("article", { class: "play" },
    h("span", { class: "stamp" }, label + ", step " + design.step),
    h("h3", {}, design.title),
    designFacts(design, other),
    codeBlock(design.source, { marked: leverLines(design.source, moved), label: label + ": " + design.title }),
    h("p", { class: "links small", style: "margin-top:.5rem" },
      h("button", { type: "button", onclick: () => open(design.env) }, "Findings, hint and plays")));
}

function designsSection(data, open) {
  if (!data.pairs.length) return null;
  const holder = h("div", { class: "pair" });
  const show = (i) => holder.replaceChildren(
    designPanel(data.pairs[i].start, data.pairs[i].end, "At the start", open),
    designPanel(data.pairs[i].end, data.pairs[i].start, "At the end", open));
  show(0);
  return section("designs", "What the designer wrote, at the start and at the end",
    "Typical designs of one skill from the first and the last pools of this run. Numbers that set the difficulty and have moved are marked.",
    data.pairs.length > 1 ? tabs(data.pairs.map((p) => words(p.skill)), "Skill", show) : null, holder);
}

function rewardLine(value) {
  if (!present(value) || value === 0) return null;
  return h("span", { class: "reward " + (value > 0 ? "good" : "poor") }, "reward " + signed(value));
}

// An observation; its last block is the hint where one was given.
function observation(text, hint) {
  const tail = "\n\nHint: " + hint;
  if (hint && text.endsWith(tail)) {
    return h("li", { class: "say world" }, text.slice(0, -tail.length), h("span", { class: "hinted" }, "Hint: " + hint));
  }
  return h("li", { class: "say world" }, text);
}

function transcript(episode, hint) {
  const hinted = episode.arm === "hinted";
  const turns = [observation(episode.first, hinted ? hint : "")];
  for (const turn of episode.turns) {
    turns.push(h("li", { class: "say actor" }, turn.m ? h("span", { class: "whole" }, turn.m) : null, turn.a || (turn.m ? null : "(nothing)")));
    const reward = rewardLine(turn.r);
    if (reward) turns.push(h("li", { class: "reward " + (turn.r > 0 ? "good" : "poor") }, reward.textContent));
    if (turn.o) turns.push(observation(turn.o, ""));
  }
  const outcome = episode.fault ? "void: " + episode.fault : episode.solved ? "solved" : episode.end === "truncated" ? "ran out of turns" : "not solved";
  return h("article", { class: "play" },
    h("header", {},
      h("h4", { class: hinted ? "hint" : "agent" }, hinted ? "With the hint" : "Without the hint"),
      h("span", { class: "badge " + (episode.solved ? "good" : "poor") }, outcome),
      h("span", { class: "small soft num" }, "return " + plain(episode.ret))),
    h("ol", { class: "turns" }, turns));
}

function duelSection(data, open) {
  const duel = data.duel;
  if (!duel) return null;
  return section("hint", "One environment, with and without its hint",
    "The same task on the same seed, played twice by the same agent. What the hint adds, averaged over seeds, is the regret that the designer is paid for.",
    h("h3", {}, duel.title),
    h("p", { class: "small soft", style: "margin:.1rem 0 .8rem" }, "seed " + duel.seed + "; over all its seeds the hint adds " + signed(duel.regret) + " to the return. ",
      h("span", { class: "links", style: "display:inline-flex" }, h("button", { type: "button", onclick: () => open(duel.env) }, "The whole environment"))),
    h("p", { class: "callout", style: "margin-bottom:1.2rem" }, h("b", {}, "Hint  "), duel.hint),
    h("div", { class: "pair" }, transcript(duel.without, duel.hint), transcript(duel.with, duel.hint)));
}
