// Plays: a transcript, and one seed played twice, turn by turn.
function result(episode) {
  if (episode.fault) return "void: " + episode.fault;
  return episode.solved ? "solved" : episode.end === "truncated" ? "ran out of turns" : "not solved";
}

function playHead(episode, title) {
  return h("header", {},
    h("h4", { class: episode.arm === "hinted" ? "hint" : "agent" }, title || (episode.arm === "hinted" ? "With the hint" : "Without the hint")),
    h("span", { class: "badge " + (episode.solved ? "good" : "poor") }, result(episode)),
    h("span", { class: "small soft" }, worth(episode)));
}

// What training reckons is held in [-1, 1], and in some return modes is the last reward alone.
function worth(episode) {
  const apart = present(episode.ret) && present(episode.sum) && Math.abs(episode.ret - episode.sum) > 1e-6;
  return "return " + plain(episode.ret) + (apart ? " in training, rewards " + plain(episode.sum) + " in all" : "");
}

function rewardText(value) {
  return "reward " + (value === 0 ? "0" : signed(value));
}

function actionOf(turn) {
  return [turn.m ? h("span", { class: "whole" }, turn.m) : null, turn.a || (turn.m ? null : "(nothing)")];
}

function rewardClass(value) {
  return "reward " + (value > 0 ? "good" : value < 0 ? "poor" : "");
}

function transcript(episode, title) {
  const turns = [h("li", { class: "say world" }, episode.first,
    episode.hint ? h("span", { class: "hinted" }, "Hint: " + episode.hint) : null)];
  for (const turn of episode.turns) {
    turns.push(h("li", { class: "say actor" }, actionOf(turn)));
    if (turn.r) turns.push(h("li", { class: rewardClass(turn.r) }, rewardText(turn.r)));
    if (turn.o) turns.push(h("li", { class: "say world" }, turn.o));
  }
  return h("article", { class: "play" }, playHead(episode, title), h("ol", { class: "turns" }, turns));
}

// What the environment says before a turn: once where both plays read the same.
function before(plays, turn) {
  const texts = plays.map((play) => (turn === 0 ? play.first : turn <= play.turns.length ? play.turns[turn - 1].o : ""));
  if (texts[0] === texts[1]) return texts[0] ? h("p", { class: "say world" }, texts[0]) : null;
  return h("div", { class: "arms" }, texts.map((text, i) =>
    h("div", {}, text ? h("p", { class: "say world" }, h("span", { class: "hidden" }, (i ? "With" : "Without") + " the hint: "), text) : null)));
}

function answer(play, turn, name) {
  const one = play.turns[turn];
  if (turn > play.turns.length) return h("div", { class: "answer" });
  const inner = one
    ? [h("p", { class: "say actor" }, actionOf(one)), present(one.r) ? h("p", { class: rewardClass(one.r) }, rewardText(one.r)) : null]
    : h("p", { class: "soft small" }, "The episode is over.");
  return h("div", { class: "answer" }, h("p", { class: "tag " + (play.arm === "hinted" ? "hint" : "agent") }, name), inner);
}

function rounds(plays) {
  const names = ["without hint", "with hint"];
  const length = Math.max(...plays.map((play) => play.turns.length));
  const items = [];
  for (let turn = 0; turn < length; turn += 1) {
    items.push(h("li", { class: "turn" },
      h("p", { class: "turn-name" }, "Turn " + (turn + 1)),
      before(plays, turn),
      h("div", { class: "arms" }, plays.map((play, i) => answer(play, turn, names[i])))));
  }
  const last = before(plays, length);
  if (last) items.push(h("li", { class: "turn" }, h("p", { class: "turn-name" }, "End"), last));
  return h("ol", { class: "rounds" }, items);
}

function laterBlock(later, open) {
  const name = later.what === "operation" ? "the operation “" + words(later.name) + "”" : "the skill " + words(later.name);
  const rates = later.thirds.map(([wins, plays], i) => plays
    ? percent(wins / plays) + " of " + plural(plays, "play") + " in the " + ["first", "middle", "last"][i] + " third" : null).filter(Boolean);
  return h("div", { class: "later" },
    h("h3", {}, "And later, without a hint"),
    h("p", { class: "small soft" }, "Without a hint, environments of " + name + " were solved in " + rates.join(", ") + "."),
    later.play
      ? h("div", { class: "pair" },
        transcript(later.play, "Step " + nth(later.play.step) + ", without the hint"),
        h("p", { class: "small soft" }, "Chosen by rule: the latest solved play of " + (later.what === "operation" ? "that operation, of the same kind of environment where there is one" : "that skill") + ". It is of ",
          h("span", { class: "links", style: "display:inline" }, h("button", { type: "button", onclick: () => open(later.env) }, later.title)),
          " (seed " + later.play.seed + "), which the agent won in " + percent(later.win) + " of its plays."))
      : h("p", {}, "In the last third of the run there is no solved play of it to show."));
}

function duelSection(data, open) {
  const duel = data.duel;
  if (!duel) return null;
  const plays = [duel.without, duel.with];
  return section("hint", "One environment, played twice",
    "The same task on the same seed by the same agent, without the hint and with it. What the hint adds to the return, averaged over seeds, is the hint regret that the designer is paid for.",
    h("h3", {}, duel.title),
    h("p", { class: "small soft", style: "margin:.1rem 0 .8rem" }, "Step " + nth(duel.step) + ", seed " + duel.seed + "; over all its seeds the hint adds " + signed(duel.regret) + (present(duel.se) ? " ± " + duel.se.toFixed(2) : "") + " to the return. ",
      h("span", { class: "links", style: "display:inline-flex" }, h("button", { type: "button", onclick: () => open(duel.env) }, "The whole environment"))),
    h("p", { class: "callout" }, h("b", {}, "Hint, shown in the second play  "), duel.hint),
    h("div", { class: "arms heads" }, plays.map((play) => playHead(play))),
    rounds(plays),
    h("p", { class: "small soft" }, duel.rule),
    duel.later ? laterBlock(duel.later, open) : null);
}
