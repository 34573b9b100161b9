// Line charts of our own: a few curves over steps, bands of standard error, a cursor for mouse and keys.
const HEIGHT = 210;
const PAD = { left: 40, right: 12, top: 10, bottom: 24 };

function niceTicks(low, high, wanted) {
  const span = high - low || 1;
  const raw = span / wanted;
  const power = Math.pow(10, Math.floor(Math.log10(raw)));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((m) => m >= raw * 0.999) || raw;
  const ticks = [];
  for (let v = Math.ceil(low / step - 1e-9) * step; v <= high + step * 1e-6; v += step) ticks.push(Number(v.toPrecision(10)));
  return ticks;
}

function extent(curves, spec) {
  if (spec.range) return spec.range;
  let low = Infinity, high = -Infinity;
  for (const curve of curves) {
    for (const [, value, error] of curve.points) {
      low = Math.min(low, value - (error || 0));
      high = Math.max(high, value + (error || 0));
    }
  }
  if (spec.zero) { low = Math.min(low, 0); high = Math.max(high, 0); }
  if (low === Infinity) return [0, 1];
  if (low === high) { const pad = Math.abs(low) * 0.1 || 1; return [low - pad, high + pad]; }
  const margin = (high - low) * 0.06;
  return [low - (spec.zero && low === 0 ? 0 : margin), high + margin];
}

// A running mean over a sixteenth of the points, for curves too ragged to read.
function smooth(points) {
  if (points.length < 24) return null;
  const half = Math.max(1, Math.round(points.length / 32));
  return points.map(([x], i) => {
    const near = points.slice(Math.max(0, i - half), i + half + 1);
    return [x, near.reduce((sum, p) => sum + p[1], 0) / near.length];
  });
}

function pathOf(points, x, y) {
  return points.map(([px, py], i) => (i ? "L" : "M") + x(px).toFixed(1) + " " + y(py).toFixed(1)).join("");
}

function bandOf(points, x, y) {
  const up = points.map(([px, py, e]) => [px, py + (e || 0)]);
  const down = points.map(([px, py, e]) => [px, py - (e || 0)]).reverse();
  return pathOf([...up, ...down], x, y) + "Z";
}

// spec: title, note, form, range, zero, curves: [{label, colour, points: [[step, value, error]], marks}]
function lineChart(spec) {
  const form = FORMS[spec.form] || plain;
  const curves = spec.curves.filter((c) => c.points.length);
  const steps = [...new Set(curves.flatMap((c) => c.points.map((p) => p[0])))].sort((a, b) => a - b);
  const [low, high] = extent(curves, spec);
  const lookup = curves.map((c) => new Map(c.points.map((p) => [p[0], p])));
  const values = curves.map(() => h("b"));
  const at = h("span", { class: "at" });
  const keys = h("p", { class: "keys" },
    curves.map((c, i) => h("span", { class: "key " + c.colour }, h("span", {}, c.label), values[i])), at);
  const box = s("svg", {
    height: HEIGHT, tabindex: 0, role: "slider", "aria-label": spec.title + ", by step",
    "aria-valuemin": steps[0], "aria-valuemax": steps[steps.length - 1],
  });
  let place = steps.length - 1;
  let scaleX = null;
  let cursor = null;
  let dots = [];

  function say(active) {
    const step = steps[place];
    const said = [];
    curves.forEach((curve, i) => {
      const point = lookup[i].get(step) || (active ? null : curve.points[curve.points.length - 1]);
      values[i].textContent = point ? form(point[1]) + (point[2] ? " ± " + (spec.form === "percent" ? Math.round(100 * point[2]) : plain(Number(point[2].toPrecision(2)))) : "") : "–";
      said.push(curve.label + " " + values[i].textContent);
    });
    at.textContent = active ? stepName(step, spec.total) : steps.length > 1 ? "last step" : "";
    box.setAttribute("aria-valuenow", step);
    box.setAttribute("aria-valuetext", stepName(step, spec.total) + ": " + said.join(", "));
    if (cursor && scaleX) {
      cursor.setAttribute("visibility", active ? "visible" : "hidden");
      cursor.setAttribute("x1", scaleX(step));
      cursor.setAttribute("x2", scaleX(step));
    }
  }

  function draw(width) {
    if (width < 60) return;
    box.replaceChildren();
    box.setAttribute("viewBox", "0 0 " + width + " " + HEIGHT);
    const first = steps[0], last = steps[steps.length - 1];
    const x = (v) => PAD.left + (last === first ? 0.5 : (v - first) / (last - first)) * (width - PAD.left - PAD.right);
    const y = (v) => PAD.top + (1 - (v - low) / (high - low)) * (HEIGHT - PAD.top - PAD.bottom);
    scaleX = x;
    for (const tick of niceTicks(low, high, 4)) {
      box.append(s("line", { class: spec.zero && tick === 0 ? "axis" : "grid", x1: PAD.left, x2: width - PAD.right, y1: y(tick), y2: y(tick) }),
        s("text", { x: PAD.left - 7, y: y(tick) + 4, "text-anchor": "end" }, form(tick).replace("\u00a0%", "%")));
    }
    for (const tick of niceTicks(nth(first), Math.min(nth(last), spec.total || Infinity), width / 90).filter(Number.isInteger)) {
      box.append(s("text", { x: x(tick - 1), y: HEIGHT - 6, "text-anchor": "middle" }, tick));
    }
    for (const curve of curves) {
      const group = s("g", { class: curve.colour });
      if (curve.points.some((p) => p[2]) && curve.points.length > 1) group.append(s("path", { class: "band", d: bandOf(curve.points, x, y) }));
      const calm = smooth(curve.points);
      group.append(s("path", { class: "curve" + (calm ? " raw" : ""), d: pathOf(curve.points, x, y) }));
      if (calm) group.append(s("path", { class: "curve", d: pathOf(calm, x, y) }));
      for (const [from, to, mean] of curve.spans || []) {
        group.append(s("line", { class: "mean", x1: x(from), x2: x(to), y1: y(mean), y2: y(mean) }));
      }
      if (curve.marks || curve.points.length === 1) {
        for (const [px, py] of curve.points) group.append(s("circle", { class: "dot", cx: x(px), cy: y(py), r: 3.5 }));
      }
      box.append(group);
    }
    cursor = s("line", { class: "cursor", y1: PAD.top, y2: HEIGHT - PAD.bottom, visibility: "hidden" });
    box.append(cursor);
    say(document.activeElement === box);
  }

  box.addEventListener("pointermove", (event) => {
    const bounds = box.getBoundingClientRect();
    const px = event.clientX - bounds.left;
    place = steps.reduce((best, step, i) => (Math.abs(scaleX(step) - px) < Math.abs(scaleX(steps[best]) - px) ? i : best), 0);
    say(true);
  });
  box.addEventListener("pointerleave", () => { place = steps.length - 1; say(false); });
  box.addEventListener("focus", () => say(true));
  box.addEventListener("blur", () => { place = steps.length - 1; say(false); });
  box.addEventListener("keydown", (event) => {
    const moves = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10, Home: -1e9, End: 1e9 };
    if (!(event.key in moves)) return;
    event.preventDefault();
    place = Math.max(0, Math.min(steps.length - 1, place + moves[event.key]));
    say(true);
  });
  new ResizeObserver((entries) => draw(entries[0].contentRect.width)).observe(box);
  say(false);
  return h("figure", { class: "chart" + (spec.wide ? " wide" : "") },
    h("h3", {}, spec.title), keys, box, spec.note ? h("p", { class: "note" }, spec.note) : null);
}

// A chart of metric columns: points are the steps that have the metric.
function metricChart(data, spec) {
  const curves = spec.series.map((one) => {
    const values = data.metrics[one.key] || [];
    const errors = data.metrics[one.se] || [];
    const points = [];
    values.forEach((value, i) => { if (present(value)) points.push([data.steps[i], value, errors[i]]); });
    return { ...one, points };
  });
  return lineChart({ ...spec, total: data.settings.steps, curves });
}
