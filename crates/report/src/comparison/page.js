// The script of a comparison page: a read-out that follows pointer, finger and slider in all charts, and copy buttons. All
// results are in the page without it. No library.
"use strict";
(() => {
  /**
   * The curve of an arm: a value for each percentile from P1 to P99, `null` where it is not known.
   * @typedef {object} Curve
   * @property {(number | null)[]} e Estimated change, in percent.
   * @property {(number | null)[]} l Lower end of the 95 % interval, in percent.
   * @property {(number | null)[]} h Upper end of the 95 % interval, in percent; `null` as well if there is none.
   * @property {(string | null)[] | null} w Why there is no change; `null` if there is one at all percentiles.
   * @property {(number | null)[] | null} m TTLB, in milliseconds; `null` in the chart of paths, which has changes only, and
   *   without connections.
   */

  /**
   * A chart. A plot is its left, top, right and bottom edge in the SVG, the changes at its left and right edge, and whether
   * the axis between them is of the logarithm of the ratio.
   * @typedef {object} Chart
   * @property {[number, number, number, number, number, number, boolean][]} plots The plots, one per size of the chart.
   * @property {(number | null)[] | null} base TTLB of the baseline at P1 to P99, in milliseconds; `null` in the chart of paths, and without
   *   connections.
   * @property {Curve[]} arms The other arms.
   */

  /** @type {{ arms: string[], unit: string, charts: Chart[] }} */
  const data = JSON.parse(document.getElementById("data").textContent);
  const slider = /** @type {HTMLInputElement} */ (document.getElementById("percentile"));
  const shown = document.getElementById("shown");
  const SPACE = "\u00a0";

  // ---- Numbers, in the format of the page --------------------------------------------------------------------

  /** @type {(value: number | string) => string} */
  const count = (value) => String(value).replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");
  /** @type {(value: number) => string} */
  const bareMs = (value) => {
    const step = value >= 100 ? 100 : value >= 10 ? 10 : 1;
    const micros = Math.round(Math.round(value * 1000) / step) * step;
    const [whole, decimals] = (micros / 1000)
      .toFixed(3)
      .replace(/\.?0+$/, "")
      .split(".");
    return count(whole) + (decimals ? "." + decimals : "");
  };
  /** @type {(value: number | null) => string} */
  const ms = (value) => (value === null ? "never" : bareMs(value) + (data.unit ? SPACE + data.unit : ""));
  /** @type {(value: number) => string} */
  const bare = (value) => {
    const text = Math.abs(value).toFixed(Math.abs(value) < 99.95 ? 1 : 0);
    return Number(text) === 0 ? text : (value < 0 ? "−" : "+") + text;
  };
  /** @type {(value: number | null) => string} */
  const percent = (value) => (value === null ? "–" : bare(value) + SPACE + "%");
  /** @type {(low: number | null, high: number | null, why: string | null | undefined) => string} */
  const range = (low, high, why) => {
    if (low === null) return why ?? "too few";
    if (high !== null) return `${bare(low)} to${SPACE}${bare(high)}${SPACE}%`;
    return low > -100 ? `at least ${percent(low)}` : "unbounded";
  };

  // ---- The read-out ------------------------------------------------------------------------------------------------

  const NS = "http://www.w3.org/2000/svg";
  /** @type {(tag: string, parent: Element, attributes: Record<string, string | number>) => SVGElement} */
  const make = (tag, parent, attributes) => {
    const element = document.createElementNS(NS, tag);
    for (const name in attributes) element.setAttribute(name, String(attributes[name]));
    parent.append(element);
    return element;
  };
  /** The charts of the page, each with its plots and the cells of its read-out. */
  const figures = [...document.querySelectorAll("figure")].map((figure) => {
    const chart = data.charts[Number(figure.dataset.chart)];
    const plots = [...figure.querySelectorAll("svg")].map((svg, i) => {
      const [left, top, right, bottom, low, high, isLog] = chart.plots[i];
      /** @type {(change: number) => number} */
      const scaled = (change) => (isLog ? Math.log1p(change / 100) : change);
      /** @type {(change: number) => number} */
      const across = (change) => left + ((scaled(change) - scaled(low)) / (scaled(high) - scaled(low))) * (right - left);
      const cursor = make("g", svg, { class: "cursor" });
      const line = make("line", cursor, { x1: left, x2: right });
      const dots = chart.arms.map((_, arm) => {
        const dot = make("circle", cursor, { r: 4.5 });
        dot.style.fill = `var(--a${(arm % 8) + 1})`;
        return dot;
      });
      const plot = { top, bottom, low, high, across, line, dots };
      /** @param {PointerEvent} event */
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

  /** The percentile shown. */
  let here = 0;

  /** @param {number} wanted The percentile to show. */
  const show = (wanted) => {
    const percentile = Math.max(1, Math.min(99, wanted));
    if (percentile === here) return;
    here = percentile;
    const place = percentile - 1;
    for (const { chart, plots, rows } of figures) {
      for (const { line, dots, across, top, bottom, low, high } of plots) {
        const y = bottom - ((bottom - top) * percentile) / 100;
        line.setAttribute("y1", String(y));
        line.setAttribute("y2", String(y));
        dots.forEach((dot, arm) => {
          const change = chart.arms[arm].e[place];
          const inside = change !== null && change >= low && change <= high;
          dot.style.display = inside ? "" : "none";
          if (!inside) return;
          dot.setAttribute("cx", String(across(change)));
          dot.setAttribute("cy", String(y));
        });
      }
      if (chart.base) rows[0][0].textContent = ms(chart.base[place]);
      chart.arms.forEach((arm, i) => {
        const cells = rows[rows.length - chart.arms.length + i];
        if (arm.m) cells[0].textContent = ms(arm.m[place]);
        const change = cells[cells.length - 1];
        change.textContent = percent(arm.e[place]) + " ";
        const small = document.createElement("small");
        small.textContent = range(arm.l[place], arm.h[place], arm.w?.[place]);
        change.append(small);
      });
    }
    slider.value = String(percentile);
    shown.textContent = `P${percentile}`;
    const first = data.charts[0].arms.map((arm, i) => `${data.arms[i + 1]} ${percent(arm.e[place])}`);
    slider.setAttribute("aria-valuetext", `P${percentile}: ${first.join(", ")}`);
  };
  slider.parentElement.hidden = false;
  slider.addEventListener("input", () => show(Number(slider.value)));
  show(50);

  // ---- Copy buttons ------------------------------------------------------------------------------------------------------

  /** @param {Node} element */
  const select = (element) => {
    const selection = getSelection();
    selection.selectAllChildren(element);
    return selection;
  };
  for (const button of document.querySelectorAll("button")) {
    button.hidden = false;
    button.setAttribute("aria-label", "Copy the text below");
    button.addEventListener("click", async () => {
      const code = button.parentElement.querySelector("code");
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = "Copied";
      } catch {
        // Without access to the clipboard, the text is selected.
        select(code);
        button.textContent = "Selected";
      }
      setTimeout(() => (button.textContent = "Copy"), 1500);
    });
  }
})();
