// Puts the page together.
function curvesSection(data) {
  const charts = data.charts.map((spec) => metricChart(data, spec));
  if (!charts.length) return null;
  const extra = [];
  const pools = data.pools;
  const line = (key) => pools.filter((p) => present(p[key])).map((p) => [p.step, p[key]]);
  if (line("vendi").length > 1) {
    extra.push(lineChart({ title: "Variety of each pool", form: "percent", range: [0, 1],
      note: "Different: Vendi score over number of environments, 100 % if no two sources resemble one another. Repeats: share whose code, names aside, this run had already seen.",
      curves: [{ label: "different", colour: "designer", points: line("vendi") }, { label: "repeats", colour: "bad", points: line("repeats") }] }));
  }
  return section("curves", "How the run went", (barred(data) ? "Dashed bars are the means of the run’s first and last quarter, the figures above. " : "") + "Point at a curve, or focus it and use the arrow keys, to read its values.",
    h("div", { class: "charts" }, charts, extra), skillTable(data));
}

// A short run has no quarter of more than a step, whose mean a bar could show.
function barred(data) {
  return data.charts.some((chart) => chart.series.some((one) => one.spans && one.spans.length));
}

function skillTable(data) {
  if (!data.skills.some((row) => row.win.some(present))) return null;
  return h("div", { style: "margin-top:2.5rem" },
    h("h3", { style: "margin-bottom:.5rem" }, "By skill, first half of the run and second"),
    table(["Skill", "tries", "accepted", "won, first", "second", "regret, first", "second"], data.skills.map((row) => [
      words(row.skill), count(row.tries), percent(row.accepted / row.tries), percent(row.win[0]), percent(row.win[1]), ...row.regret.map((value, i) => signed(value) + (present(row.se[i]) ? " ± " + row.se[i].toFixed(2) : ""))])));
}

function leversSection(data, open) {
  const levers = data.levers.map((lever) => lineChart({ title: words(lever.name), form: "plain",
    curves: [{ label: "mean of the designs", colour: "designer", spans: lever.spans, points: lever.steps.map((step, i) => [step, lever.mean[i], lever.se[i]]) }] }));
  const memory = data.memory.length ? h("div", { style: "margin-top:2.5rem" },
    h("h3", {}, "Memory: the examples that stood in most prompts"),
    h("p", { class: "soft small", style: "margin:.1rem 0 .6rem" }, "The designer is shown environments at the edge of what the agent can do, and told which were too easy or too hard."),
    table(["Environment", "won", "regret", "prompts", "accepted", "their win rate"], data.memory.map((row) => [
      h("button", { type: "button", onclick: () => open(row.env, data.memory.map((m) => m.env)) }, data.envs.title[row.env] || "untitled"),
      percent(data.envs.win[row.env]), signed(data.envs.regret[row.env]), count(row.prompts), percent(row.accepted / row.prompts), percent(row.win)]), true)) : null;
  if (!levers.length && !memory) return null;
  return section("levers", "The designer’s levers and memory",
    levers.length ? "Numbers that the sources set, such as how many options or rounds a task has: where they rise, the designer asks for more. The band is one standard error" + (data.levers.some((lever) => lever.spans.length) ? ", dashed bars are the means of the run’s three thirds." : ".") : "",
    levers.length ? h("div", { class: "charts small" }, levers) : null, memory);
}

function bar(name, value, total, kind, action, sub) {
  const fillBar = h("i", { class: kind });
  fillBar.style.width = (total ? (100 * value) / total : 0) + "%";
  const label = action ? h("button", { type: "button", class: "name", onclick: action }, name) : h("span", { class: "name" }, name);
  return h("div", { class: "row" }, h("span", {}, label, sub ? h("span", { class: "sub" }, sub) : null), h("span", { class: "track" }, fillBar),
    h("span", { class: "count" }, count(value), h("span", { class: "soft" }, " " + percent(total ? value / total : null))));
}

function funnelSection(data, browse) {
  const funnel = data.funnel;
  if (!funnel.tries) return null;
  const rows = [bar("Written", funnel.tries, funnel.tries, "plain"),
    ...funnel.byCode.map(([code, n]) => bar(code, n, funnel.tries, "", browse ? () => browse.filterByCode(code) : null, data.codes[code] || "")),
    bar("Accepted", funnel.accepted, funnel.tries, "good")];
  const tries = funnel.byTry.length > 1 ? h("div", {}, h("h3", { style: "margin-bottom:.4rem" }, "By try"),
    table(["Try", "written", "accepted", "share"], funnel.byTry.map(([n, all, ok]) => [String(n), count(all), count(ok), percent(ok / all)]))) : null;
  const security = data.security.codes.length ? h("details", { style: "margin-top:1.5rem" },
    h("summary", {}, "What designs tried that they may not"),
    table(["From step", ...data.security.codes], data.security.rows.map(([step, ...counts]) => [nth(step), ...counts].map(String))),
    h("ul", { class: "findings", style: "margin-top:.6rem" }, data.security.codes.map((code) => h("li", { class: "small" }, h("code", {}, code), " ", data.codes[code] || "")))) : null;
  return section("funnel", "Where designs were lost",
    "Each try runs through the validator’s gates in the sandbox; the first error stops it. A code shows the designs that it stopped.",
    h("div", { class: tries ? "split" : "" }, h("div", {}, h("div", { class: "bars" }, rows), security), tries));
}

function costSection(data) {
  const rows = data.cost;
  const names = { tokens: "tokens", generations: "generations", executions: "executions", validator_calls: "validator calls", seconds: "seconds", flops: "FLOPs" };
  const columns = Object.keys(names).filter((key) => rows.some((row) => present(row[key])));
  const sum = (key) => rows.reduce((total, row) => total + (row[key] || 0), 0);
  const select = h("select", { "aria-label": "Metric" }, data.others.map((key) => h("option", { value: key }, key)));
  const holder = h("div");
  const draw = () => holder.replaceChildren(metricChart(data, { title: select.value, form: "plain", wide: true, series: [{ key: select.value, label: "value", colour: "agent" }] }));
  select.addEventListener("change", draw);
  const metrics = data.others.length ? h("details", { ontoggle: (event) => { if (event.target.open && !holder.firstChild) draw(); } },
    h("summary", {}, "Every other metric"), h("p", { style: "margin-bottom:.8rem" }, select), holder) : null;
  const tiers = data.tiers.played ? h("p", { class: "soft", style: "margin-top:1rem" },
    "Of " + plural(data.tiers.played, "played environment") + ", " + percent(data.tiers.graded) + " pay partial credit; an environment pays " + plain(data.tiers.mean) + " distinct rewards on average.") : null;
  return section("cost", "Cost and settings", rows.length ? "What each role spent, over the whole run." : "",
    rows.length ? table(["Role", ...columns.map((key) => names[key])], [
      ...rows.map((row) => [words(row.role), ...columns.map((key) => present(row[key]) ? plain(row[key]) : "")]),
      [h("b", {}, "all"), ...columns.map((key) => h("b", {}, plain(sum(key))))]]) : null,
    tiers,
    h("div", { style: "margin-top:1.2rem" }, metrics,
      data.config ? h("details", {}, h("summary", {}, "The run’s configuration"), h("pre", { class: "yaml" }, data.config)) : null,
      data.problems.length ? h("details", {}, h("summary", {}, plural(data.problems.length, "line") + " of the run could not be read"), h("ul", { class: "findings" }, data.problems.map((p) => h("li", { class: "small" }, p)))) : null));
}

function themeButton() {
  const button = document.getElementById("theme");
  const names = { "": "Auto", light: "Light", dark: "Dark" };
  const order = ["", "light", "dark"];
  const apply = (theme) => {
    if (theme) document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
    button.textContent = names[theme];
    button.setAttribute("aria-label", "Colours: " + (theme || "automatic"));
    document.dispatchEvent(new Event("themechange"));
  };
  button.addEventListener("click", () => apply(order[(order.indexOf(document.documentElement.dataset.theme || "") + 1) % 3]));
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => document.dispatchEvent(new Event("themechange")));
}

async function start() {
  const main = document.getElementById("main");
  themeButton();
  if (!("DecompressionStream" in window)) {
    main.append(h("p", { class: "notice" }, "This browser can’t unpack the report’s data. Any browser since 2023 can."));
    return;
  }
  const data = await unpack("index");
  const open = detailDialog(data);
  const browse = browseSection(data, open);
  const parts = [storySection(data), designsSection(data, open), duelSection(data, open), curvesSection(data), leversSection(data, open),
    funnelSection(data, browse), mapSection(data, open), browse, costSection(data)].filter(Boolean);
  main.append(...parts);
  const names = { designs: "Designs", hint: "Hint", curves: "Curves", levers: "Levers", funnel: "Funnel", map: "Map", environments: "Environments", cost: "Cost" };
  document.getElementById("nav").append(...parts.filter((p) => names[p.id]).map((p) => h("a", { href: "#" + p.id }, names[p.id])));
  const asked = /^#env-(\d+)$/.exec(location.hash);
  if (asked && Number(asked[1]) < data.envs.title.length) open(Number(asked[1]));
  document.documentElement.dataset.ready = "true";
}

start();
