// The environments: search, filters, and cards drawn a few dozen at a time.
const BATCH = 24;

function browseSection(data, open) {
  const envs = data.envs;
  const total = envs.title.length;
  if (!total) return null;
  const state = { text: "", skill: "", status: "accepted", reach: "", sort: "new" };
  const list = h("ul", { class: "cards" });
  const said = h("p", { class: "soft small", "aria-live": "polite", style: "margin-bottom:.8rem" });
  const more = h("button", { type: "button", class: "button", onclick: () => grow() });
  const haystack = envs.title.map((title, env) =>
    [title, envs.sha[env], words(envs.skills[envs.skill[env]]), envs.stop[env], "step " + nth(envs.step[env])].join(" ").toLowerCase());
  let found = [];
  let drawn = 0;

  const reaches = {
    easy: (v) => v > 0.8, band: (v) => v >= 0.2 && v <= 0.8, hard: (v) => v < 0.2,
  };
  const orders = {
    new: (a, b) => envs.step[b] - envs.step[a] || a - b,
    old: (a, b) => envs.step[a] - envs.step[b] || a - b,
    regret: (a, b) => (envs.regret[b] ?? -9) - (envs.regret[a] ?? -9) || a - b,
    win: (a, b) => (envs.win[b] ?? -1) - (envs.win[a] ?? -1) || a - b,
    lose: (a, b) => (envs.win[a] ?? 2) - (envs.win[b] ?? 2) || a - b,
  };

  function matches(env) {
    if (state.status === "accepted" && envs.stop[env]) return false;
    if (state.status === "stopped" && !envs.stop[env]) return false;
    if (state.status.startsWith("code ") && envs.stop[env] !== state.status.slice(5)) return false;
    if (state.skill !== "" && envs.skill[env] !== Number(state.skill)) return false;
    if (state.reach && !(present(envs.win[env]) && reaches[state.reach](envs.win[env]))) return false;
    return state.text.split(/\s+/).every((word) => haystack[env].includes(word));
  }

  function meter(label, value, colour) {
    const bar = h("i");
    bar.style.width = 100 * Math.max(0, Math.min(1, value)) + "%";
    return h("span", { class: "meter" }, h("span", {}, label), h("span", { class: "track " + colour }, bar), h("span", { class: "value" }, percent(value)));
  }

  function card(env) {
    const stop = envs.stop[env];
    return h("li", {}, h("button", { type: "button", class: "card", onclick: () => open(env, found) },
      h("span", { class: "title" }, envs.title[env] || (stop === "no code" ? "No code in the answer" : "untitled")),
      h("span", { class: "meta" }, words(envs.skills[envs.skill[env]]) + ", step " + nth(envs.step[env])),
      stop ? h("span", { class: "small bad" }, stop + (data.codes[stop] ? ": " + data.codes[stop] : "")) : null,
      present(envs.win[env]) ? meter("no hint", envs.win[env], "agent") : null,
      present(envs.hinted[env]) ? meter("with hint", envs.hinted[env], "hint") : null,
      !stop && !present(envs.win[env]) ? h("span", { class: "small soft" }, "accepted, not played") : null));
  }

  function grow() {
    const next = found.slice(drawn, drawn + BATCH).map(card);
    list.append(...next);
    const focus = drawn > 0 && document.activeElement === more;
    drawn += next.length;
    more.hidden = drawn >= found.length;
    more.textContent = "Show " + Math.min(BATCH, found.length - drawn) + " more of " + count(found.length - drawn);
    if (focus && next.length) next[0].firstChild.focus();
  }

  function update() {
    found = [];
    for (let env = 0; env < total; env++) if (matches(env)) found.push(env);
    found.sort(orders[state.sort]);
    said.textContent = plural(found.length, "environment") + " of " + count(total);
    list.replaceChildren();
    drawn = 0;
    grow();
  }

  function choice(label, key, options) {
    const select = h("select", { onchange: (event) => { state[key] = event.target.value; update(); } },
      options.map(([value, text]) => h("option", { value }, text)));
    select.value = state[key];
    return h("label", {}, label, select);
  }

  const status = choice("Verdict", "status", [["accepted", "accepted"], ["stopped", "stopped"], ["all", "all"],
    ...data.funnel.byCode.map(([code, n]) => ["code " + code, "stopped by " + code + " (" + n + ")"])]);
  const search = h("input", { type: "search", placeholder: "title, skill, hash, code, step", oninput: (event) => { state.text = event.target.value.toLowerCase().trim(); update(); } });
  update();
  const node = section("environments", "Environments",
    "Everything the designer wrote in this run. A card opens the source, the validator’s findings, the hint and plays in both arms.",
    h("div", { class: "filters" },
      h("label", { class: "grow" }, "Search", search),
      choice("Skill", "skill", [["", "all skills"], ...envs.skills.map((name, i) => [String(i), words(name)])]),
      status,
      choice("Difficulty", "reach", [["", "any"], ["easy", "won in over 80 %"], ["band", "won in 20 to 80 %"], ["hard", "won in under 20 %"]]),
      choice("Order", "sort", [["new", "newest first"], ["old", "oldest first"], ["regret", "highest regret"], ["win", "most often won"], ["lose", "least often won"]])),
    said, list, h("p", { class: "more-row" }, more));
  node.filterByCode = (code) => {
    state.status = "code " + code;
    status.querySelector("select").value = state.status;
    update();
    node.scrollIntoView();
    status.querySelector("select").focus({ preventScroll: true });
  };
  return node;
}
