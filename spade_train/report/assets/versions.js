// Two designs of one skill, an early and a late one: sources line by line, differences marked.
function designFacts(design, other) {
  const facts = [];
  for (const [name, value] of Object.entries(design.levers || {})) {
    facts.push(h("span", { class: other.levers[name] !== value ? "moved" : "" }, words(name) + " ", h("b", {}, plain(value))));
  }
  return h("p", { class: "facts" }, facts);
}

function outcome(design) {
  const row = [h("span", {}, "won without hint ", h("b", {}, percent(design.win)), " of " + plural(design.plays, "play"))];
  if (present(design.hinted)) row.push(h("span", {}, "with hint ", h("b", {}, percent(design.hinted))));
  row.push(h("span", {}, "hint regret ", h("b", {}, signed(design.regret)), present(design.se) ? " ± " + design.se.toFixed(2) : ""));
  return h("p", { class: "facts" }, row);
}

// Empty lines in place of those that only the other side has, so that equal lines stand side by side.
function fillers(rows, side) {
  const before = new Map();
  let waiting = 0;
  let last = 0;
  for (const row of rows) {
    if (row[side] === null) { waiting += 1; continue; }
    if (waiting) before.set(row[side], waiting);
    waiting = 0;
    last = row[side];
  }
  if (waiting) before.set(last + 1, waiting);
  return before;
}

function designPanel(pair, side, open) {
  const [design, other] = side ? [pair.end, pair.start] : [pair.start, pair.end];
  const label = side ? "Near the end" : "Near the start";
  const moved = new Set(Object.keys(design.levers).filter((name) => other.levers[name] !== design.levers[name]));
  const marked = pair.rows.length ? new Set(Object.keys(design.changed).map(Number)) : leverLines(design.source, moved);
  return h("article", { class: "play version" },
    h("span", { class: "stamp" }, label + ", step " + nth(design.step)),
    h("h3", {}, design.title),
    outcome(design),
    designFacts(design, other),
    h("p", { class: "callout" }, h("b", {}, "Hint  "), design.hint || "none"),
    codeBlock(design.source, { marked, spans: design.changed, gaps: fillers(pair.rows, side), label: label + ": " + design.title }),
    h("p", { class: "links small" },
      h("button", { type: "button", onclick: () => open(design.env) }, "Findings and plays")));
}

// Both sources scroll as one.
function yoke(holder) {
  const boxes = [...holder.querySelectorAll("pre.code")];
  boxes.forEach((box, i) => box.addEventListener("scroll", () => {
    const other = boxes[1 - i];
    if (other && other.scrollTop !== box.scrollTop) other.scrollTop = box.scrollTop;
  }));
}

function designsSection(data, open) {
  if (!data.pairs.length) return null;
  const holder = h("div", { class: "pair versions" });
  const of = h("p", { class: "small soft" });
  const show = (i) => {
    const pair = data.pairs[i];
    of.textContent = data.pairRule + " Here: out of " + count(pair.of[0]) + " early ones and " + count(pair.of[1]) + " late ones."
      + (pair.rows.length ? "" : " These two share hardly a line, so only numbers that moved are marked.");
    holder.replaceChildren(designPanel(pair, 0, open), designPanel(pair, 1, open));
    yoke(holder);
  };
  show(0);
  return section("designs", "What the designer wrote",
    "One of its environments from the start of the run, and one from the end. Lines that differ are tinted; within like lines the words that differ are marked.",
    data.pairs.length > 1 ? tabs(data.pairs.map((pair) => words(pair.skill)), "Skill", show) : null, holder, of);
}
