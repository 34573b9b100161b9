"use strict";

// Every text that comes from data goes through here: as a text node, with what is invisible shown.
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;

function visible(text) {
  return String(text).replace(CONTROL, (c) => {
    const code = c.codePointAt(0);
    if (code === 13) return "";
    if (code < 32) return String.fromCodePoint(0x2400 + code);
    return "⟨U+" + code.toString(16).toUpperCase().padStart(4, "0") + "⟩";
  });
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(3)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(visible(child)));
  }
  return node;
}

const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const s = (tag, attributes, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

async function unpack(name) {
  const node = document.getElementById("data-" + name);
  const bytes = Uint8Array.from(atob(node.textContent), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

const chunks = new Map();

// Details of an environment: its chunk is unpacked when it is first asked for.
async function details(data, env) {
  const home = data.envs.chunk[env];
  if (!chunks.has(home)) chunks.set(home, unpack("chunk-" + home));
  const first = data.envs.chunk.indexOf(home);
  return (await chunks.get(home))[env - first];
}

const words = (name) => String(name).replaceAll("_", " ");
const present = (value) => value !== null && value !== undefined;
const plural = (n, one, many) => count(n) + " " + (n === 1 ? one : many || one + "s");

function count(n) {
  return Math.round(n).toLocaleString("en");
}

// Steps are counted from 0 in a run's files, and from 1 for people.
function nth(step) {
  return step + 1;
}

// What comes after the last step is none: the last designs are paid, the agent is measured again.
function stepName(step, total) {
  return total && step >= total ? "after the last step" : "step " + nth(step);
}

function percent(value) {
  return present(value) ? Math.round(100 * value) + "\u00a0%" : "–";
}

function signed(value) {
  if (!present(value)) return "–";
  const text = Math.abs(value).toFixed(2);
  return (value < 0 && text !== "0.00" ? "−" : "+") + text;
}

function plain(value) {
  if (!present(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1e15) return value.toExponential(1).replace("e+", " × 10^");
  if (size >= 1e4) {
    const unit = size >= 1e12 ? [1e12, " T"] : size >= 1e9 ? [1e9, " G"] : size >= 1e6 ? [1e6, " M"] : [1e3, " k"];
    return (value / unit[0]).toFixed(1) + unit[1];
  }
  if (Number.isInteger(value)) return String(value);
  return size > 0 && size < 0.001 ? value.toExponential(1) : String(Number(value.toPrecision(3)));
}

const FORMS = { percent, signed, plain };

function section(id, title, lead, ...children) {
  const label = id + "-title";
  return h("section", { id, "aria-labelledby": label },
    h("h2", { id: label }, title),
    lead ? h("p", { class: "lead" }, lead) : null,
    h("div", { class: "body" }, children));
}

function tabs(names, label, choose) {
  const buttons = names.map((name, i) => h("button", {
    type: "button", "aria-pressed": i === 0 ? "true" : "false",
    onclick: () => {
      buttons.forEach((b, j) => b.setAttribute("aria-pressed", j === i ? "true" : "false"));
      choose(i);
    },
  }, name));
  return h("div", { class: "tabs", role: "group", "aria-label": label }, buttons);
}

// `named`: the first column holds titles, which want room.
function table(head, rows, named = false) {
  const kind = (i) => (i === 0 ? "text" : "num");
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": head[0] + " table" },
    h("table", { class: named ? "named" : null },
      h("thead", {}, h("tr", {}, head.map((c, i) => h("th", { scope: "col", class: kind(i) }, c)))),
      h("tbody", {}, rows.map((row) => h("tr", {}, row.map((c, i) => h("td", { class: kind(i) }, c)))))));
}
