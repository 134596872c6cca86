"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const NS = "http://www.w3.org/2000/svg";
  const BLUE = "var(--c005fa8,#005fa8)", ORANGE = "var(--cc97b00,#c97b00)", GRID = "var(--ce8e9ec,#e8e9ec)", MUTED = "var(--c5c6068,#5c6068)";
  const COLORS = { document: "#7a5cc4", stylesheet: "#00a37a", script: "#d99000", font: "#c8477a", image: "#3b8fd6", media: "#8a6d3b", fetch: "#5f8f2f", other: "#888888" };
  let selection = 0, network = null, page = null;

  const make = (name, attributes, text) => {
    const element = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== undefined) element.textContent = text;
    return element;
  };
  const show = (ms) => (ms === Infinity ? "not complete" : ms >= 10000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.round(ms)} ms`);

  const choose = (index) => {
    selection = index;
    for (const part of document.querySelectorAll("[data-selection]")) part.hidden = Number(part.dataset.selection) !== index;
    mark();
    if (network !== null) large();
    if (page !== null) waterfall();
  };
  const mark = () => {
    for (const button of document.querySelectorAll("[data-network]")) button.classList.toggle("chosen", Number(button.dataset.network) === network);
  };

  const large = () => {
    const section = document.getElementById("large");
    const [arm, view, metric] = data.selections[selection];
    // A load that was not complete has no time.
    const pairs = data.pairs[selection][network].map((pair) => pair.map((value) => value ?? Infinity));
    section.hidden = false;
    section.querySelector("h2").textContent = `${data.networks[network]}: ${metric}, ${data.views[view]} view`;
    const side = 600, left = 62, bottom = side - 46, right = side - 12, top = 10;
    const svg = make("svg", { viewBox: `0 0 ${side} ${side}`, role: "img", "aria-label": "Each dot is a page", "font-size": 13 });
    if (pairs.length > 0) {
      const all = pairs.flatMap((pair) => [pair[1], pair[2]]).filter(Number.isFinite);
      if (all.length === 0) all.push(115, 10000 / 1.15);
      const low = Math.log10(Math.min(...all) / 1.15), high = Math.log10(Math.max(...all) * 1.15);
      const x = (ms) => left + ((Math.min(Math.log10(ms), high) - low) / (high - low)) * (right - left);
      const y = (ms) => bottom - ((Math.min(Math.log10(ms), high) - low) / (high - low)) * (bottom - top);
      for (let power = 0; power < 8; power++) for (const digit of [1, 2, 5]) {
        const ms = digit * 10 ** power;
        if (Math.log10(ms) < low || Math.log10(ms) > high) continue;
        svg.append(make("path", { d: `M${x(ms)} ${top}V${bottom}M${left} ${y(ms)}H${right}`, stroke: GRID }));
        const label = ms >= 1000 ? `${ms / 1000} s` : `${ms} ms`;
        svg.append(make("text", { x: left - 6, y: y(ms) + 4, "text-anchor": "end", fill: MUTED }, label));
        svg.append(make("text", { x: x(ms), y: bottom + 17, "text-anchor": "middle", fill: MUTED }, label));
      }
      svg.append(make("path", { d: `M${left} ${bottom}L${right} ${top}`, stroke: MUTED, "stroke-dasharray": "5 4" }));
      for (const [index, baseline, time] of pairs) {
        const dot = make("circle", { cx: x(baseline).toFixed(1), cy: y(time).toFixed(1), r: 4.2, fill: time < baseline ? BLUE : ORANGE, "fill-opacity": 0.65, tabindex: 0 });
        dot.append(make("title", {}, `${data.pages[index].name}: ${data.arms[0]} ${show(baseline)}, ${data.arms[arm]} ${show(time)}`));
        const open = () => {
          page = index;
          for (const other of svg.querySelectorAll(".chosen")) other.classList.remove("chosen");
          dot.classList.add("chosen");
          waterfall();
          document.getElementById("waterfall").scrollIntoView({ block: "nearest", behavior: "smooth" });
        };
        dot.addEventListener("click", open);
        dot.addEventListener("keydown", (event) => { if (event.key === "Enter") open(); });
        if (index === page) dot.classList.add("chosen");
        svg.append(dot);
      }
    }
    svg.append(make("text", { x: (left + right) / 2, y: side - 8, "text-anchor": "middle", fill: "currentColor" }, data.arms[0]));
    svg.append(make("text", { x: 14, y: (top + bottom) / 2, "text-anchor": "middle", fill: "currentColor", transform: `rotate(-90 14 ${(top + bottom) / 2})` }, data.arms[arm]));
    section.querySelector(".plot").replaceChildren(svg);
  };

  const find = (arm, view) => {
    const of = (wanted) => data.waterfalls.find((one) => one[0] === page && one[1] === wanted && one[2] === arm && one[3] === view);
    return of(network) ?? data.waterfalls.find((one) => one[0] === page && one[2] === arm && one[3] === view);
  };
  const waterfall = () => {
    const section = document.getElementById("waterfall");
    const [arm, view] = data.selections[selection];
    const facts = data.pages[page];
    const both = [0, arm].map((one) => find(one, view));
    section.hidden = false;
    const sides = section.querySelector(".sides");
    if (both.some((one) => one === undefined)) {
      section.querySelector("h2").textContent = `${facts.name}: no waterfall was kept`;
      sides.replaceChildren();
      return;
    }
    section.querySelector("h2").textContent = `${facts.name} on ${data.networks[both[0][1]]}, ${data.views[view]} view: ${facts.resources.length} requests, ${facts.hosts} hosts, ${Math.round(facts.bytes / 1000)} kB`;
    const end = Math.max(1, ...both.flatMap((one) => one[4].map((bar) => bar[2] ?? bar[1] ?? bar[0] ?? 0)));
    const order = facts.resources.map((_, index) => index).sort((a, b) => (both[0][4][a][0] ?? 1e9) - (both[0][4][b][0] ?? 1e9) || a - b);
    sides.replaceChildren(...both.map((one, place) => {
      const row = 9, names = 104, width = 540, head = 18, height = head + order.length * row + 4;
      const x = (ms) => names + (ms / end) * (width - names - 6);
      const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, "font-size": 7.5, role: "img", "aria-label": "Waterfall" });
      // At most six intervals, so that labels do not touch.
      const power = 10 ** Math.floor(Math.log10(end / 6));
      const step = power * ([1, 2, 5].find((one) => one * power >= end / 6) ?? 10);
      for (let ms = 0; ms <= end; ms += step) {
        svg.append(make("path", { d: `M${x(ms)} ${head - 4}V${height}`, stroke: GRID }));
        svg.append(make("text", { x: x(ms), y: 9, "text-anchor": "middle", fill: MUTED, "font-size": 9 }, show(ms)));
      }
      order.forEach((index, place) => {
        const [kind, host, bytes] = facts.resources[index];
        const [requested, first, last] = one[4][index];
        const at = head + place * row;
        svg.append(make("text", { x: 0, y: at + 7, fill: MUTED }, `${kind} ${host}`.slice(0, 22)));
        if (requested === null) return;
        const color = COLORS[kind] ?? "#888888";
        const group = make("g", {});
        group.append(make("title", {}, `${index} ${kind} ${host}, ${bytes} B: requested ${show(requested)}` + (first === null ? "" : `, first byte ${show(first)}`) + (last === null ? "" : `, last byte ${show(last)}`)));
        const end = last ?? first ?? requested;
        group.append(make("rect", { x: x(requested), y: at + 1, width: Math.max(0.5, x(first ?? end) - x(requested)), height: row - 2, fill: color, "fill-opacity": 0.3 }));
        if (first !== null) group.append(make("rect", { x: x(first), y: at + 1, width: Math.max(0.8, x(end) - x(first)), height: row - 2, fill: color }));
        svg.append(group);
      });
      const side = document.createElement("div");
      const title = document.createElement("h3");
      title.textContent = data.arms[place === 0 ? 0 : arm];
      side.append(title, svg);
      return side;
    }));
  };

  const lists = [...document.querySelectorAll(".choose select")];
  for (const list of lists) list.addEventListener("change", () => choose(lists.reduce((sum, one) => sum + Number(one.value), 0)));
  for (const button of document.querySelectorAll("[data-network]")) button.addEventListener("click", () => {
    network = Number(button.dataset.network);
    mark();
    large();
    document.getElementById("large").scrollIntoView({ block: "nearest", behavior: "smooth" });
  });
})();
