// The head of the story: headline, what the run came to in plain sentences, key figures.
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
      "One model plays two roles and teaches itself. As the designer it writes small tasks for itself, as the agent it solves them. ",
      "The designer is paid for tasks that the agent solves about half of the time, and whose hint would still help, so they should move along with what the agent can do."),
    data.points.length ? h("div", { class: "points" }, data.points.map(point)) : null,
    data.figures.length ? h("dl", { class: "figures" }, data.figures.map(figure)) : null);
}

const INK = { agent: "agent", designer: "designer", hints: "hint", levers: "designer" };

function point(one) {
  return h("article", { class: "point " + INK[one.id] },
    h("h2", {}, one.heading),
    h("div", {},
      one.text.map((sentence) => h("p", {}, sentence)),
      one.levers ? thirds(one.levers) : null,
      h("dl", { class: "terms" }, one.terms.map(([term, meaning]) => h("div", {}, h("dt", {}, term), h("dd", {}, meaning))))));
}

function thirds(levers) {
  const cell = ([mean, error]) => [mean.toFixed(2), error === null ? null : h("span", { class: "soft" }, " ± " + error.toFixed(2))];
  return table(["Mean of the designs", "first third", "middle", "last"], levers.map((lever) => [words(lever.name), ...lever.thirds.map(cell)]));
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
