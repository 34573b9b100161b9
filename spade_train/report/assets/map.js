// The map: environments whose sources resemble one another lie close together. A canvas, so that
// ten thousand points draw at once.
const HUES = [210, 30, 150, 275, 0, 95, 185, 325, 60, 240];

function mapColours(data, by, dark) {
  const light = dark ? 68 : 42;
  if (by === "skill") {
    return { of: (env) => `hsl(${HUES[data.envs.skill[env] % HUES.length]} 55% ${light}%)`,
      keys: data.envs.skills.map((name, i) => [`hsl(${HUES[i % HUES.length]} 55% ${light}%)`, words(name)]) };
  }
  const last = Math.max(1, ...data.envs.step);
  const value = by === "step" ? (env) => data.envs.step[env] / last : (env) => data.envs.win[env];
  // Win rates part at a half: amber below, blue above. Steps go from pale blue to deep violet.
  const ramp = (v) => {
    if (!present(v)) return "hsl(0 0% 60%)";
    if (by === "step") return `hsl(${200 + 80 * v} 55% ${dark ? 45 + 30 * v : 66 - 32 * v}%)`;
    const off = Math.abs(2 * v - 1);
    return `hsl(${v < 0.5 ? 34 : 211} ${8 + 62 * off}% ${dark ? 66 - 6 * off : 62 - 16 * off}%)`;
  };
  const names = by === "step" ? ["first step", "", "last step"] : ["never won", "half", "always won"];
  return { of: (env) => ramp(value(env)), keys: [[ramp(0), names[0]], [ramp(0.5), names[1] || "middle"], [ramp(1), names[2]]] };
}

function mapSection(data, open) {
  const envs = data.envs;
  const points = envs.x.map((x, env) => env).filter((env) => present(envs.x[env]));
  if (points.length < 3) return null;
  const canvas = h("canvas", { tabindex: 0, role: "application",
    "aria-label": "Map of " + points.length + " environments. Arrow keys move between neighbours, Enter opens one." });
  const says = h("p", { class: "says", "aria-live": "polite" }, h("span", { class: "soft" }, "Point at an environment, or use the arrow keys; Enter or a click opens it."));
  const scale = h("p", { class: "scale" });
  let by = "win", chosen = null, width = 0, height = 0;
  const px = (env) => 14 + envs.x[env] * (width - 28);
  const py = (env) => height - 14 - envs.y[env] * (height - 28);

  function draw() {
    const context = canvas.getContext("2d");
    const ratio = window.devicePixelRatio || 1;
    const style = getComputedStyle(document.documentElement);
    const dark = style.colorScheme === "dark";
    const colours = mapColours(data, by, dark);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    const radius = points.length > 3000 ? 2 : points.length > 600 ? 3 : 4;
    context.globalAlpha = points.length > 3000 ? 0.6 : 0.82;
    for (const env of points) {
      context.fillStyle = colours.of(env);
      context.beginPath();
      context.arc(px(env), py(env), radius, 0, 7);
      context.fill();
    }
    context.globalAlpha = 1;
    if (chosen !== null) {
      context.strokeStyle = style.getPropertyValue("--ink");
      context.lineWidth = 2;
      context.beginPath();
      context.arc(px(chosen), py(chosen), radius + 4, 0, 7);
      context.stroke();
    }
    scale.replaceChildren(...colours.keys.map(([colour, name]) => {
      const dot = h("i");
      dot.style.background = colour;
      return h("span", {}, dot, name);
    }));
  }

  function choose(env) {
    chosen = env;
    if (env !== null) {
      says.replaceChildren(h("b", {}, envs.title[env] || "untitled"), " ",
        h("span", { class: "soft" }, words(envs.skills[envs.skill[env]]) + ", step " + nth(envs.step[env]) + ", won in " + percent(envs.win[env]) + " of plays"));
    }
    draw();
  }

  function nearest(x, y, reach) {
    let best = null, distance = reach * reach;
    for (const env of points) {
      const d = (px(env) - x) ** 2 + (py(env) - y) ** 2;
      if (d < distance) { distance = d; best = env; }
    }
    return best;
  }

  function step(dx, dy) {
    if (chosen === null) return choose(points[0]);
    let best = null, score = Infinity;
    for (const env of points) {
      const ax = px(env) - px(chosen), ay = py(env) - py(chosen);
      const along = ax * dx + ay * dy;
      const across = Math.abs(ax * dy - ay * dx);
      if (along > 0.5 && across <= along * 1.5 && along + 2 * across < score) { score = along + 2 * across; best = env; }
    }
    if (best !== null) choose(best);
  }

  canvas.addEventListener("pointermove", (event) => {
    const bounds = canvas.getBoundingClientRect();
    const found = nearest(event.clientX - bounds.left, event.clientY - bounds.top, 14);
    if (found !== null && found !== chosen) choose(found);
  });
  canvas.addEventListener("click", (event) => {
    const bounds = canvas.getBoundingClientRect();
    const found = nearest(event.clientX - bounds.left, event.clientY - bounds.top, 14);
    if (found !== null) { choose(found); open(found, points); }
  });
  canvas.addEventListener("keydown", (event) => {
    const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    if (event.key in moves) { event.preventDefault(); step(...moves[event.key]); }
    if (event.key === "Enter" && chosen !== null) open(chosen, points);
  });
  new ResizeObserver(() => {
    const ratio = window.devicePixelRatio || 1;
    width = canvas.clientWidth;
    height = canvas.clientHeight;
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    draw();
  }).observe(canvas);
  document.addEventListener("themechange", draw);
  const choices = ["win", "skill", "step"];
  const tools = tabs(["by win rate", "by skill", "by step"], "Colour of the map", (i) => { by = choices[i]; draw(); });
  const how = data.embedder === "sbert" ? "sentence embeddings" : "words and pairs of words (TF-IDF)";
  return section("map", "Map of the accepted environments",
    "Sources that resemble one another lie close together, compared by " + how + ". Distances across the map mean little; neighbourhoods mean something.",
    h("div", { class: "map" }, tools, canvas, scale, says));
}
