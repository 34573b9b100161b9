// Python, coloured: enough of its grammar to tell words, texts, numbers and comments apart.
const PYTHON = new RegExp([
  "(#[^\\n]*)",
  "((?:[rbfuRBFU]{0,2})(?:\"\"\"[\\s\\S]*?(?:\"\"\"|$)|'''[\\s\\S]*?(?:'''|$)|\"(?:\\\\.|[^\"\\\\\\n])*\"?|'(?:\\\\.|[^'\\\\\\n])*'?))",
  "\\b(and|as|assert|break|case|class|continue|def|del|elif|else|except|False|finally|for|from|global|if|import|in|is|lambda|match|None|nonlocal|not|or|pass|raise|return|self|True|try|while|with|yield)\\b",
  "\\b(\\d[\\d_]*(?:\\.\\d+)?(?:[eE][+-]?\\d+)?)\\b",
].join("|"), "g");
const CLASSES = ["tc", "ts", "tk", "tn"];

function tokens(source) {
  const found = [];
  let end = 0;
  for (const match of source.matchAll(PYTHON)) {
    if (match.index > end) found.push(["", source.slice(end, match.index)]);
    const kind = match.slice(1).findIndex((group) => group !== undefined);
    found.push([CLASSES[kind], match[0]]);
    end = match.index + match[0].length;
  }
  found.push(["", source.slice(end)]);
  return found;
}

// Cuts a piece of a line where a marked stretch begins or ends: [text, is it marked].
function cut(text, start, stretches) {
  const parts = [];
  let at = start;
  const end = start + text.length;
  for (const [from, to] of stretches) {
    if (to <= at || from >= end) continue;
    if (from > at) parts.push([text.slice(at - start, from - start), false]);
    parts.push([text.slice(Math.max(from, at) - start, Math.min(to, end) - start), true]);
    at = Math.min(to, end);
  }
  if (at < end) parts.push([text.slice(at - start), false]);
  return parts;
}

// A source as lines; `marked` and `wrong` are sets of line numbers from 1, `spans` the stretches of a
// line to mark, `gaps` how many empty rows stand before a line.
function codeBlock(source, { marked = new Set(), wrong = new Set(), spans = {}, gaps = new Map(), whole = false, label = "Source" } = {}) {
  const code = h("code");
  let number = 0;
  let line = null;
  let column = 0;
  const gap = () => {
    for (let i = gaps.get(number) || 0; i > 0; i -= 1) code.append(h("span", { class: "gap", "aria-hidden": "true" }));
  };
  const open = () => {
    number += 1;
    column = 0;
    gap();
    line = h("span", { class: "line" + (marked.has(number) ? " marked" : "") + (wrong.has(number) ? " wrong" : "") });
    code.append(line);
  };
  open();
  for (const [kind, text] of tokens(source.replace(/\r\n?/g, "\n").replace(/\n+$/, ""))) {
    text.split("\n").forEach((piece, i) => {
      if (i > 0) open();
      for (const [part, differs] of cut(piece, column, spans[number] || [])) {
        const node = kind ? h("span", { class: kind }, part) : document.createTextNode(visible(part));
        line.append(differs ? h("mark", {}, node) : node);
      }
      column += piece.length;
    });
  }
  number += 1;
  gap();
  return h("pre", { class: "code" + (whole ? " whole" : ""), tabindex: 0, role: "region", "aria-label": label }, code);
}

// Lines on which one of the named levers is set.
function leverLines(source, names) {
  const lines = new Set();
  source.split("\n").forEach((text, i) => {
    const match = /^\s*([A-Za-z_]\w*)\s*(?::[^=]+)?=[^=]/.exec(text);
    if (match && names.has(match[1])) lines.add(i + 1);
  });
  return lines;
}
