// One environment in full, in a dialog: hint, numbers, source with its findings, plays, lineage.
function detailDialog(data) {
  const dialog = document.getElementById("detail");
  const envs = data.envs;
  let order = [];
  let current = null;
  let opener = null;

  const name = (env) => envs.title[env] || (envs.sha[env] ? "untitled " + envs.sha[env] : "no code");

  function facts(env, more) {
    const row = [];
    const fact = (label, value) => row.push(h("span", {}, label + " ", h("b", {}, value)));
    fact("step", String(nth(envs.step[env])));
    fact("slot", envs.slot[env] + ", try " + (envs.try[env] + 1));
    if (envs.plays[env]) {
      fact("won without hint", percent(envs.win[env]) + " of " + plural(envs.plays[env], "play"));
      if (present(envs.hinted[env])) fact("with hint", percent(envs.hinted[env]));
      if (present(envs.regret[env])) fact("regret", signed(envs.regret[env]) + (present(envs.se[env]) ? " ± " + envs.se[env].toFixed(2) : ""));
    }
    for (const [lever, value] of Object.entries(more.levers)) fact(words(lever), plain(value));
    for (const [kind, times] of Object.entries(more.faults || {})) fact("fault " + kind, plural(times, "play"));
    if (more.rewards && more.rewards.length) fact("rewards seen", more.rewards.map(plain).join("  "));
    return h("p", { class: "facts" }, row);
  }

  function findings(more) {
    if (!more.findings.length) return null;
    return h("div", {}, h("h3", {}, "Findings"), h("ul", { class: "findings" }, more.findings.map((f) =>
      h("li", {}, h("code", { class: f.severity === "warning" ? "hint" : "bad" }, f.code), " ",
        f.message || data.codes[f.code] || "", f.line ? h("span", { class: "soft" }, " (line " + f.line + ")") : null))));
  }

  function episodes(more) {
    if (!more.episodes.length) return null;
    const seeds = [...new Set(more.episodes.map((e) => e.seed))];
    return seeds.map((seed) => h("div", {},
      h("h3", {}, "Played on seed " + seed),
      h("div", { class: "pair" }, more.episodes.filter((e) => e.seed === seed).map((e) => transcript(e)))));
  }

  function lineage(more) {
    const list = (title, members) => members.length ? h("div", {}, h("h3", {}, title),
      h("p", { class: "links" }, members.slice(0, 24).map((env) => h("button", { type: "button", onclick: () => show(env) }, name(env) + " (step " + nth(envs.step[env]) + ")")),
        members.length > 24 ? h("span", { class: "soft" }, "and " + (members.length - 24) + " more") : null)) : null;
    return [list("Examples in its prompt", more.parents), list("It was an example for", more.children)];
  }

  async function show(env) {
    current = env;
    const more = await details(data, env);
    if (current !== env) return;
    const stop = envs.stop[env];
    const place = order.indexOf(env);
    const wrong = new Set(more.findings.filter((f) => f.line).map((f) => f.line));
    dialog.replaceChildren(
      h("div", { class: "head" },
        h("div", {},
          h("h2", { id: "detail-title" }, name(env)),
          h("p", { class: "small soft" }, (envs.tool[env] ? "tool use, " : "game, ") + words(envs.skills[envs.skill[env]]) + (envs.sha[env] ? ", " + envs.sha[env] : "") + " ",
            h("span", { class: "badge " + (stop ? "poor" : "good") }, stop ? "stopped by " + stop : "accepted"))),
        h("button", { type: "button", class: "button", "aria-label": "Previous environment", disabled: place <= 0, onclick: () => show(order[place - 1]) }, "←"),
        h("button", { type: "button", class: "button", "aria-label": "Next environment", disabled: place < 0 || place >= order.length - 1, onclick: () => show(order[place + 1]) }, "→"),
        h("button", { type: "button", class: "button", onclick: () => dialog.close() }, "Close")),
      h("div", { class: "inner" },
        facts(env, more),
        more.hint ? h("p", { class: "callout" }, h("b", {}, "Hint  "), more.hint) : null,
        findings(more),
        episodes(more),
        more.source ? h("div", {}, h("h3", {}, "Source"), codeBlock(more.source, { wrong, whole: true })) : null,
        more.raw ? h("div", {}, h("h3", {}, "The designer’s answer"), h("pre", { class: "yaml" }, more.raw)) : null,
        lineage(more),
        more.document ? h("p", { class: "small soft" }, "Written from the document " + more.document + ".") : null));
    dialog.scrollTop = 0;
    history.replaceState(null, "", "#env-" + env);
  }

  dialog.addEventListener("close", () => {
    history.replaceState(null, "", location.pathname + location.search);
    if (opener && opener.isConnected) opener.focus();
  });
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });

  return async (env, among) => {
    opener = document.activeElement;
    order = among || [env];
    await show(env);
    if (!dialog.open) dialog.showModal();
  };
}
