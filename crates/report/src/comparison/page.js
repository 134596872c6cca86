// The page of a comparison: a read-out that follows pointer, finger and slider through all charts at once, and buttons that
// copy. The page says all it has to say without it. No library.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const slider = document.getElementById("percentile");
  const shown = document.getElementById("shown");
  const SPACE = "\u00a0";

  // ---- Numbers, written as the page writes them --------------------------------------------------------------------

  const count = (value) => String(value).replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");
  const bareMs = (value) => {
    const step = value >= 100 ? 100 : value >= 10 ? 10 : 1;
    const micros = Math.round(Math.round(value * 1000) / step) * step;
    const [whole, decimals] = (micros / 1000).toFixed(3).replace(/\.?0+$/, "").split(".");
    return count(whole) + (decimals ? "." + decimals : "");
  };
  const ms = (value) => (value === null ? "never" : bareMs(value) + SPACE + "ms");
  const bare = (value) => {
    const text = Math.abs(value).toFixed(Math.abs(value) < 99.95 ? 1 : 0);
    return Number(text) === 0 ? text : (value < 0 ? "−" : "+") + text;
  };
  const percent = (value) => (value === null ? "–" : bare(value) + SPACE + "%");
  const range = (low, high) => (low === null || high === null ? "too few" : `${bare(low)} to${SPACE}${bare(high)}${SPACE}%`);

  // ---- The read-out ------------------------------------------------------------------------------------------------

  const NS = "http://www.w3.org/2000/svg";
  const make = (tag, parent, attributes) => {
    const element = document.createElementNS(NS, tag);
    for (const name in attributes) element.setAttribute(name, attributes[name]);
    parent.append(element);
    return element;
  };
  const figures = [...document.querySelectorAll("figure[data-chart]")].map((figure) => {
    const chart = data.charts[Number(figure.dataset.chart)];
    const plots = [...figure.querySelectorAll(".plot svg")].map((svg, i) => {
      const [left, top, right, bottom, low, high] = chart.plots[i];
      const cursor = make("g", svg, { class: "cursor" });
      const line = make("line", cursor, { x1: left, x2: right });
      const dots = chart.arms.map((_, arm) => {
        const dot = make("circle", cursor, { r: 4.5 });
        dot.style.fill = `var(--a${(arm % 8) + 1})`;
        return dot;
      });
      const plot = { svg, left, top, right, bottom, low, high, line, dots };
      const follow = (event) => {
        const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
        show(Math.round(((bottom - at.y) / (bottom - top)) * 100));
      };
      svg.addEventListener("pointermove", follow);
      svg.addEventListener("pointerdown", follow);
      return plot;
    });
    const rows = [...figure.querySelectorAll(".read tbody tr")].map((row) => row.querySelectorAll("td"));
    return { chart, plots, rows };
  });

  let here = 0;
  const show = (wanted) => {
    const percentile = Math.max(1, Math.min(99, wanted));
    if (percentile === here) return;
    here = percentile;
    const place = percentile - 1;
    for (const { chart, plots, rows } of figures) {
      for (const { line, dots, left, top, right, bottom, low, high } of plots) {
        const y = bottom - ((bottom - top) * percentile) / 100;
        line.setAttribute("y1", y);
        line.setAttribute("y2", y);
        dots.forEach((dot, arm) => {
          const change = chart.arms[arm].e[place];
          const inside = change !== null && change >= low && change <= high;
          dot.style.display = inside ? "" : "none";
          if (!inside) return;
          dot.setAttribute("cx", left + ((change - low) / (high - low)) * (right - left));
          dot.setAttribute("cy", y);
        });
      }
      rows[0][0].textContent = ms(chart.base[place]);
      chart.arms.forEach((arm, i) => {
        const cells = rows[i + 1];
        cells[0].textContent = ms(arm.m[place]);
        cells[1].textContent = percent(arm.e[place]) + " ";
        const small = document.createElement("small");
        small.textContent = range(arm.l[place], arm.h[place]);
        cells[1].append(small);
      });
    }
    slider.value = percentile;
    shown.textContent = `P${percentile}`;
    const first = data.charts[0].arms.map((arm, i) => `${data.arms[i + 1]} ${percent(arm.e[place])}`);
    slider.setAttribute("aria-valuetext", `P${percentile}: ${first.join(", ")}`);
  };
  slider.parentElement.hidden = false;
  slider.addEventListener("input", () => show(Number(slider.value)));
  show(50);

  // ---- Copies ------------------------------------------------------------------------------------------------------

  const select = (element) => {
    const selection = getSelection();
    selection.selectAllChildren(element);
    return selection;
  };
  for (const button of document.querySelectorAll(".query button")) {
    button.hidden = false;
    button.setAttribute("aria-label", "Copy the text below");
    button.addEventListener("click", async () => {
      const code = button.parentElement.querySelector("code");
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = "Copied";
      } catch {
        // Where pages may not write to the clipboard, the text is selected at least.
        select(code);
        button.textContent = "Selected";
      }
      setTimeout(() => (button.textContent = "Copy"), 1500);
    });
  }
})();
