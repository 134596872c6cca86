// The script of a page of transfers: panels over time that zoom, pan and hover together. No library.
//
// The data are in the element `data`; `page.rs` and `pack.rs` describe them. The state is `view`; `draw` repaints everything, at
// most once per frame. Long series are thinned by `thin.rs`, and have levels with fewer points each, so that the cost of a frame is bounded
// by the number of pixels.
"use strict";
(() => {
  /**
   * The points of a series, in the order of time, and thinned copies of them by number of buckets.
   * @typedef {object} Series
   * @property {Float64Array} times Milliseconds.
   * @property {Float64Array} values In the unit of the row.
   * @property {Record<number, Series>} [levels] The copies.
   */

  /**
   * A series of a row, of which each arm may have points.
   * @typedef {object} SeriesInfo
   * @property {string} key
   * @property {string} label
   * @property {"dots" | "steps" | "dashed" | "area" | "crosses"} kind How it is drawn.
   * @property {boolean} overlaid Whether it is shown at first when all arms share a panel.
   */

  /**
   * A row of panels.
   * @typedef {object} Row
   * @property {string} key
   * @property {string} title
   * @property {string} unit
   * @property {number} height Pixels.
   * @property {[number, number]} extent The values at the bottom and the top.
   * @property {[number, string] | null} level A guide line: its value and label.
   * @property {SeriesInfo[]} series
   */

  /**
   * A transfer. Times are in milliseconds.
   * @typedef {object} Arm
   * @property {string} label
   * @property {string} note
   * @property {number} end When the last thing happens.
   * @property {number | null} [ended] When the transfer was complete, if others go on after it.
   * @property {[number, number] | null} slope Start and slope of the guide line at the rate of the bottleneck.
   * @property {[number, number][]} recovery Recovery periods.
   * @property {[number, number][]} blocked Periods in which flow control blocked the sender.
   * @property {[number, string][]} events
   * @property {[number, string][]} [phases] What the sender is doing from these times on.
   * @property {any} [packets] Packed for `play.js`.
   * @property {Record<string, Series>} series By key; packed in the page.
   */

  /**
   * The vertical axis of the panels of a row, side by side.
   * @typedef {object} Axis
   * @property {Row} row
   * @property {HTMLCanvasElement} canvas
   * @property {Panel[]} members
   * @property {number} [width] Of a panel, in pixels.
   * @property {number} [depth] Lanes for the names of events.
   * @property {{ y: Scale, box: Box, lo: number, hi: number }} [scale]
   */

  /**
   * A panel: a canvas for the data, and one above it for the cursor.
   * @typedef {object} Panel
   * @property {Row} row
   * @property {number[]} arms Indices of the arms that it shows.
   * @property {HTMLDivElement} div
   * @property {HTMLCanvasElement} base
   * @property {HTMLCanvasElement} top
   * @property {Axis} axis
   * @property {boolean} strip Whether the names of events are above it.
   * @property {boolean} last Whether the time axis is below it.
   * @property {boolean} [drawn]
   */

  /** @typedef {{ left: number, top: number, bottom: number, height: number }} Box */
  /** @typedef {(value: number) => number} Scale From a value or time to pixels. */
  /** @typedef {CanvasRenderingContext2D} Context */
  /** @typedef {{ x: number, from: number, to: number, lane: number, flipped: boolean, text: string }} EventLabel */

  /** @type {{ end: number, rate: number | null, since: string, rows: Row[], arms: Arm[] }} */
  const data = JSON.parse(document.getElementById("data").textContent);
  const root = document.getElementById("rows");
  const tip = document.getElementById("tip");
  const END = data.end > 0 ? data.end * 1.02 : 1;
  /** The shortest time that a zoom shows, in milliseconds. */
  const CLOSEST = Math.min(END, 0.05);
  const many = data.arms.length > 1;
  /** @type {{ from: number, to: number, cursor: number | null, moment: number | null, here: number, overlaid: boolean, select: number[] | null }} */
  const view = { from: 0, to: END, cursor: null, moment: null, here: 0, overlaid: false, select: null };
  /** @type {{ side: Set<string>, over: Set<string>, arms: Set<number> }} */
  const hidden = { side: new Set(), over: new Set(), arms: new Set() };
  for (const row of data.rows) for (const s of row.series) if (!s.overlaid) hidden.over.add(s.key);
  if (!data.arms.length)
    data.arms.push({ label: "", note: "", end: 0, slope: null, recovery: [], blocked: [], events: [], series: {} });

  // ---- Data ---------------------------------------------------------------------------------------------------------

  /** Reads the numbers of a packed text, one at each call; see `pack.rs`.
   * @type {(text: string) => () => number} */
  const varints = (text) => {
    const raw = atob(text);
    let at = 0;
    return () => {
      let sum = 0;
      let factor = 1;
      let byte;
      do {
        byte = raw.charCodeAt(at++);
        sum += (byte & 127) * factor;
        factor *= 128;
      } while (byte > 127);
      return sum % 2 ? -(sum + 1) / 2 : sum / 2;
    };
  };

  /** @type {(packed: any) => Series} */
  const unpack = ([count, grain, text]) => {
    const varint = varints(text);
    const times = new Float64Array(count);
    const values = new Float64Array(count);
    let time = 0;
    let value = 0;
    for (let i = 0; i < count; i++) {
      times[i] = (time += varint()) / 1000;
      values[i] = (value += varint()) * grain;
    }
    return { times, values, levels: {} };
  };
  for (const arm of data.arms) for (const key in arm.series) arm.series[key] = unpack(arm.series[key]);

  /**
   * At most six points of each of `buckets` equal spans of time: the first, both extremes, two between, the last. They are
   * taken from the next finer level if there is one.
   * @type {(series: Series, buckets: number) => Series}
   */
  const level = (series, buckets) => {
    const found = series.levels[buckets];
    if (found) return found;
    const { times, values } =
      buckets < FINEST && series.times.length > buckets * 16 ? level(series, buckets * 4) : series;
    const kept = new Uint32Array(Math.min(times.length, buckets * 6 + 6));
    const width = END / buckets;
    let count = 0;
    for (let start = 0; start < times.length;) {
      const limit = (Math.floor(times[start] / width) + 1) * width;
      let end = start + 1;
      let low = start;
      let high = start;
      for (; end < times.length && times[end] < limit; end++) {
        if (values[end] < values[low]) low = end;
        if (values[end] > values[high]) high = end;
      }
      const some = [
        start,
        low,
        high,
        start + Math.floor((end - start) / 3),
        start + Math.floor((end - start) / 1.5),
        end - 1,
      ].sort((p, q) => p - q);
      for (let i = 0; i < 6; i++) if (i === 0 || some[i] !== some[i - 1]) kept[count++] = some[i];
      start = end;
    }
    const made = { times: new Float64Array(count), values: new Float64Array(count) };
    for (let i = 0; i < count; i++) {
      made.times[i] = times[kept[i]];
      made.values[i] = values[kept[i]];
    }
    return (series.levels[buckets] = made);
  };
  const FINEST = 4096;
  /**
   * The series with about as many points as `pixels` can show.
   * @type {(series: Series, pixels: number) => Series}
   */
  const thinned = (series, pixels) => {
    const wanted = (pixels * 2 * END) / (view.to - view.from);
    for (let buckets = 1024; buckets <= FINEST && buckets * 8 < series.times.length; buckets *= 4) {
      if (buckets >= wanted) return level(series, buckets);
    }
    return series;
  };
  /**
   * The number of points up to and including a time.
   * @type {(times: Float64Array, ms: number) => number}
   */
  const upto = (times, ms) => {
    let lo = 0;
    let hi = times.length;
    while (lo < hi) {
      const mid = (lo + hi) >> 1;
      if (times[mid] <= ms) lo = mid + 1;
      else hi = mid;
    }
    return lo;
  };

  // ---- Numbers ------------------------------------------------------------------------------------------------------

  /**
   * The factor and the symbol of a unit for numbers of this size.
   * @type {(unit: string, magnitude: number) => [number, string]}
   */
  const prefixed = (unit, magnitude) => {
    if (unit === "ms")
      return magnitude >= 1e4 ? [1e3, "s"] : magnitude >= 0.1 || magnitude === 0 ? [1, "ms"] : [1e-3, "µs"];
    /** @type {[number, string][]} */
    const prefixes = [
      [1e12, "T"],
      [1e9, "G"],
      [1e6, "M"],
      [1e3, "k"],
    ];
    for (const [factor, prefix] of prefixes) if (magnitude >= factor) return [factor, prefix + unit];
    return [1, unit];
  };
  /** @type {(value: number, unit: string, digits?: number) => string} */
  const shown = (value, unit, digits = 3) => {
    const [factor, symbol] = prefixed(unit, Math.abs(value));
    const scaled = value / factor;
    const size = Math.abs(scaled);
    const decimals =
      factor === 1 && unit !== "ms" ? 0 : Math.max(0, digits - 1 - Math.floor(Math.log10(Math.max(size, 1))));
    return `${scaled
      .toFixed(decimals)
      .replace(/(\.\d*?)0+$/, "$1")
      .replace(/\.$/, "")} ${symbol}`;
  };
  /**
   * Round values between two values, each with its label.
   * @type {(lo: number, hi: number, wanted: number, unit: string) => [number, string][]}
   */
  const ticks = (lo, hi, wanted, unit) => {
    const raw = (hi - lo) / Math.max(1, wanted);
    const power = 10 ** Math.floor(Math.log10(raw));
    const m = raw / power;
    const step = (m <= 1.414 ? 1 : m <= 3.162 ? 2 : m <= 7.071 ? 5 : 10) * power;
    const [factor, symbol] = prefixed(unit, Math.max(Math.abs(lo), Math.abs(hi)));
    let decimals = 0;
    while (
      decimals < 6 &&
      Math.abs((step / factor) * 10 ** decimals - Math.round((step / factor) * 10 ** decimals)) > 1e-6
    )
      decimals++;
    /** @type {[number, string][]} */
    const all = [];
    for (let i = Math.ceil(lo / step - 1e-9); i * step <= hi + step * 1e-9 && all.length < 100; i++) {
      all.push([i * step, i === 0 ? "0" : `${((i * step) / factor).toFixed(decimals)} ${symbol}`]);
    }
    return all;
  };

  // ---- Layout -------------------------------------------------------------------------------------------------------

  const GUTTER = 72;
  const LANE = 16;
  const AXIS = 40;
  /**
   * Creates an element.
   * @type {(tag: string, parent: Element | null, props?: object) => any}
   */
  const make = (tag, parent, props = {}) => {
    const e = Object.assign(document.createElement(tag), props);
    if (parent) parent.append(e);
    return e;
  };
  /** @type {Record<string, string>} */
  let colors = {};
  /** @type {Panel[]} */
  let panels = [];
  /** @type {Axis[]} */
  let axes = [];
  /** The layout that the panels are built for. */
  let built = "";

  const readColors = () => {
    const style = getComputedStyle(document.documentElement);
    colors = {};
    for (const name of ["ground", "ink", "muted", "faint", "grid", "frame", "shade", "blocked", "select"])
      colors[name] = style.getPropertyValue(`--${name}`).trim();
    for (const row of data.rows)
      for (const s of row.series) colors[s.key] = style.getPropertyValue(`--${s.key}`).trim();
    for (let i = 0; i < 8; i++) colors[i] = style.getPropertyValue(`--arm${i}`).trim();
  };
  /** @type {(index: number) => string} */
  const armColor = (index) => colors[index % 8];
  /** Shades of periods: key in the data, colour, name. @type {["recovery" | "blocked", string, string][]} */
  const SHADES = [
    ["recovery", "shade", "recovery"],
    ["blocked", "blocked", "blocked by flow control"],
  ];
  /**
   * Whether a value holds until the next one.
   * @type {(s: SeriesInfo) => boolean}
   */
  const isHeld = (s) => s.kind !== "dots" && s.kind !== "crosses";
  /** @type {(s: SeriesInfo) => boolean} */
  const isLimit = (s) => s.key.endsWith("_limit");
  /**
   * Where a line ends that holds its last value: what is of the path goes on.
   * @type {(arm: Arm, key: string) => number}
   */
  const lineEnd = (arm, key) =>
    arm.ended == null || key === "queue" || key === "others" ? arm.end : Math.min(arm.ended, arm.end);
  const hiddenSeries = () => (view.overlaid ? hidden.over : hidden.side);

  /**
   * The arms of each column of each block: one arm per column, or all arms in one column.
   * @type {() => number[][][]}
   */
  const blocks = () => {
    const all = data.arms.map((_, i) => i);
    if (view.overlaid) return [[all]];
    const fit = Math.max(1, Math.min(4, Math.floor((root.clientWidth - GUTTER) / 270)));
    const count = Math.ceil(all.length / fit);
    const size = Math.ceil(all.length / count);
    const out = [];
    for (let i = 0; i < all.length; i += size) out.push(all.slice(i, i + size).map((arm) => [arm]));
    return out;
  };

  /** Builds the panels, unless they are built for the current layout. */
  const build = () => {
    const plan = blocks();
    const name = JSON.stringify(plan);
    if (name === built) return;
    built = name;
    root.textContent = "";
    panels = [];
    axes = [];
    for (const columns of plan) {
      const block = make("section", root, { className: "block" });
      const width = plan[0].length;
      block.style.gridTemplateColumns = `${GUTTER - 20}px repeat(${width}, minmax(0, 1fr))`;
      if (view.overlaid) {
        const heading = make("div", block, { className: "heading" });
        data.arms.forEach((arm, i) =>
          toggle(
            heading,
            arm.label || `arm ${i + 1}`,
            hidden.arms,
            i,
            (c) => swatch(c, "area", armColor(i)),
            arm.note,
          ),
        );
      } else {
        make("div", block);
        columns.forEach(([i]) => {
          const div = make("div", block, { className: "name" });
          make("b", div, { textContent: data.arms[i].label });
          make("span", div, { textContent: data.arms[i].note });
        });
        for (let i = columns.length; i < width; i++) make("div", block);
      }
      data.rows.forEach((row, r) => {
        const heading = make("div", block, { className: "heading" });
        make("b", heading, { textContent: row.title });
        for (const s of row.series)
          toggle(heading, s.label, hiddenSeries(), s.key, (c) =>
            swatch(c, s.kind, view.overlaid ? colors.muted : colors[s.key]),
          );
        if (r === 0 && !view.overlaid)
          for (const [key, color, name] of SHADES)
            if (data.arms.some((a) => a[key].length))
              toggle(heading, name, hidden.side, key, (c) => swatch(c, "shade", colors[color]));
        const axis = make("div", block, { className: "axis" });
        const scale = { row, canvas: make("canvas", axis), members: [] };
        axes.push(scale);
        columns.forEach((arms) => {
          const div = make("div", block, { className: "panel" });
          const base = make("canvas", div);
          const top = make("canvas", div);
          base.setAttribute("role", "img");
          base.setAttribute("aria-label", `${row.title}: ${arms.map((i) => data.arms[i].label).join(", ")}`);
          const panel = {
            row,
            arms,
            div,
            base,
            top,
            axis: scale,
            strip: r === 0,
            last: r === data.rows.length - 1,
          };
          scale.members.push(panel);
          panels.push(panel);
          listen(panel);
        });
        for (let i = columns.length; i < width; i++) make("div", block);
      });
    }
  };

  /**
   * A button that shows or hides a series or an arm.
   * @type {(parent: Element, label: string, set: Set<any>, key: string | number, paint: (canvas: HTMLCanvasElement) => void, note?: string) => void}
   */
  const toggle = (parent, label, set, key, paint, note) => {
    const button = make("button", parent, { type: "button", title: note || `Show or hide “${label}”` });
    const canvas = make("canvas", button);
    paint(canvas);
    button.append(label);
    button.setAttribute("aria-pressed", String(!set.has(key)));
    button.onclick = () => {
      if (!set.delete(key)) set.add(key);
      built = "";
      const index = [...root.querySelectorAll("button")].indexOf(button);
      refresh();
      root.querySelectorAll("button")[index]?.focus();
    };
  };
  /** @type {(canvas: HTMLCanvasElement, kind: string, color: string) => void} */
  const swatch = (canvas, kind, color) => {
    canvas.width = 54;
    canvas.height = 36;
    const c = canvas.getContext("2d");
    c.scale(3, 3);
    c.fillStyle = c.strokeStyle = color;
    c.lineWidth = 1.8;
    c.lineCap = "round";
    c.beginPath();
    if (kind === "dots") {
      c.arc(9, 6, 3.5, 0, 7);
      c.fill();
    } else if (kind === "crosses") {
      c.moveTo(6, 3);
      c.lineTo(12, 9);
      c.moveTo(12, 3);
      c.lineTo(6, 9);
      c.stroke();
    } else if (kind === "shade") {
      c.fillRect(1, 0, 16, 12);
      c.fillRect(1, 0, 16, 12);
    } else {
      if (kind === "area") {
        c.globalAlpha = 0.25;
        c.fillRect(1, 5, 16, 7);
        c.globalAlpha = 1;
      }
      if (kind === "dashed") c.setLineDash([3, 4]);
      c.moveTo(1, 5);
      c.lineTo(17, 5);
      c.stroke();
    }
  };

  // ---- Drawing ------------------------------------------------------------------------------------------------------

  /** Whether a frame is requested. */
  let asked = false;
  const refresh = () => {
    if (!asked) {
      asked = true;
      requestAnimationFrame(() => {
        asked = false;
        draw();
      });
    }
  };
  const FONT = 'system-ui, -apple-system, "Segoe UI", "Helvetica Neue", Arial, sans-serif';

  /**
   * The context of a canvas that is cleared and has this size in pixels.
   * @type {(canvas: HTMLCanvasElement, width: number, height: number) => Context}
   */
  const prepared = (canvas, width, height) => {
    const ratio = Math.min(3, window.devicePixelRatio || 1);
    const w = Math.max(1, Math.round(width * ratio));
    const h = Math.max(1, Math.round(height * ratio));
    if (canvas.width !== w || canvas.height !== h) {
      canvas.width = w;
      canvas.height = h;
    }
    const c = canvas.getContext("2d");
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.clearRect(0, 0, width, height);
    c.font = `12px ${FONT}`;
    return c;
  };

  /**
   * The names of events above a panel. Each starts at its line, in the lowest lane where it does not overlap another.
   * @type {(arm: Arm, c: Context, width: number) => EventLabel[]}
   */
  const lanes = (arm, c, width) => {
    const labels = [];
    for (const [ms, name] of [...arm.events].reverse()) {
      const x = ((ms - view.from) / (view.to - view.from)) * width;
      if (x < -1 || x > width + 1) continue;
      const text = `${name} ${shown(ms, "ms")}`;
      const size = c.measureText(text).width + 9;
      // The text ends 5 pixels before the label; it is never cut off.
      const flipped = x + size - 5 > width && x > size;
      const from = flipped ? x - size : Math.min(x, Math.max(-4, width - size + 5));
      const to = from + size;
      let best = null;
      for (let lane = 0; lane <= labels.length; lane++) {
        if (labels.some((l) => l.lane === lane && l.to > from && to > l.from)) continue;
        const cost = labels.filter(
          (l) => (l.lane > lane && from < l.x && l.x < to) || (l.lane < lane && l.from < x && x < l.to),
        ).length;
        if (!best || cost < best.cost) best = { lane, cost };
      }
      labels.push({ x, from, to, lane: best.lane, flipped, text });
    }
    return labels;
  };

  /**
   * The values at the bottom and the top of a row.
   * @type {(row: Row, members: Panel[]) => number[]}
   */
  const extent = (row, members) => {
    if (view.from <= 0 && view.to >= END) return row.extent;
    let lo = Infinity;
    let hi = -Infinity;
    for (const index of new Set(members.flatMap((p) => p.arms))) {
      if (view.overlaid && hidden.arms.has(index)) continue;
      for (const s of row.series) {
        const series = data.arms[index].series[s.key];
        if (!series || hiddenSeries().has(s.key) || isLimit(s)) continue;
        const { times, values } = thinned(series, 250);
        let i = upto(times, view.from);
        if (isHeld(s)) i = Math.max(0, i - 1);
        for (; i < times.length && times[i] <= view.to; i++) {
          if (values[i] < lo) lo = values[i];
          if (values[i] > hi) hi = values[i];
        }
      }
    }
    if (lo > hi) return row.extent;
    if (row.key === "pacing") hi = Math.min(hi, row.extent[1]);
    if (row.key !== "bytes") {
      if (row.unit !== "ms") lo = Math.min(0, lo);
      else if (hi - lo < hi * 0.1) {
        const middle = (hi + lo) / 2;
        lo = middle - hi * 0.05;
        hi = middle + hi * 0.05;
      }
      if (row.level && row.level[0] > hi && row.level[0] < hi * 1.5) hi = row.level[0];
    }
    const room = (hi - lo || Math.abs(hi) || 1) * 0.06;
    return [lo === 0 ? 0 : lo - room, hi + room];
  };

  /** @type {(element: any, width: number, height: number) => void} */
  const fit = (element, width, height) => {
    const wanted = `${width ? `width:${width}px;` : ""}height:${height}px`;
    if (element.fitted !== wanted) element.style.cssText = element.fitted = wanted;
  };
  const draw = () => {
    build();
    // The layout is read before it is changed. Panels out of sight are painted when they are scrolled to.
    const narrow = root.clientWidth < 560;
    const width = panels[0].div.clientWidth;
    const far = new Set(
      panels.filter((p) => {
        const r = p.div.getBoundingClientRect();
        return p.drawn && (r.bottom < -50 || r.top > window.innerHeight + 50);
      }),
    );
    const strip = new Map();
    for (const axis of axes) {
      const { row, members } = axis;
      const tall = row.height * (narrow ? 0.85 : 0.95);
      let depth = 0;
      if (members[0].strip && !view.overlaid) {
        const c = members[0].base.getContext("2d");
        c.font = `12px ${FONT}`;
        // The number of lanes never decreases, so that panels do not move during a zoom.
        for (const p of members) {
          const l = lanes(data.arms[p.arms[0]], c, width);
          strip.set(p, l);
          for (const x of l) depth = Math.max(depth, x.lane + 1);
        }
        axis.depth = depth = Math.max(depth, axis.width === width ? axis.depth || 0 : 0);
      }
      const above = depth * LANE + 6;
      const below = members[0].last ? AXIS : 8;
      const box = { left: 0, top: above, bottom: above + tall, height: above + tall + below };
      const [lo, hi] = extent(row, members);
      const y = (value) => box.bottom - ((value - lo) / (hi - lo || 1)) * tall;
      axis.width = width;
      axis.scale = { y, box, lo, hi };
      const marks = ticks(lo, hi, Math.max(2, Math.min(7, Math.floor(tall / 24))), row.unit);
      const gutter = prepared(axis.canvas, GUTTER, box.height);
      fit(axis.canvas, GUTTER, box.height);
      gutter.textAlign = "right";
      gutter.textBaseline = "middle";
      gutter.fillStyle = colors.muted;
      for (const [value, label] of marks) gutter.fillText(label, GUTTER - 8, y(value));
      for (const p of members) {
        fit(p.div, 0, box.height);
        if (!far.has(p)) {
          panelBase(p, marks, strip.get(p) || []);
          p.drawn = true;
        }
      }
    }
    overlays();
  };

  /**
   * Paints a panel without its cursor.
   * @type {(panel: Panel, marks: [number, string][], labels: EventLabel[]) => void}
   */
  const panelBase = (panel, marks, labels) => {
    const { row, axis } = panel;
    const { y, box } = axis.scale;
    const width = axis.width;
    const c = prepared(panel.base, width, box.height);
    const span = view.to - view.from;
    const x = (ms) => ((ms - view.from) / span) * width;
    const times = ticks(view.from, view.to, Math.max(2, Math.min(14, Math.floor(width / 68))), "ms");
    c.save();
    c.beginPath();
    c.rect(0, box.top, width, box.bottom - box.top);
    c.clip();
    for (const [key, color] of SHADES) {
      if (view.overlaid || hidden.side.has(key)) continue;
      c.fillStyle = colors[color];
      for (const [from, to] of data.arms[panel.arms[0]][key])
        c.fillRect(x(from), box.top, Math.max(0.5, x(to) - x(from)), box.bottom - box.top);
    }
    c.strokeStyle = colors.grid;
    c.lineWidth = 1;
    c.beginPath();
    for (const [ms] of times) {
      const at = Math.round(x(ms)) + 0.5;
      c.moveTo(at, box.top);
      c.lineTo(at, box.bottom);
    }
    for (const [value] of marks) {
      const at = Math.round(y(value)) + 0.5;
      c.moveTo(0, at);
      c.lineTo(width, at);
    }
    c.stroke();
    // Labels of guide lines are below the data, so that they hide none.
    guide(c, panel, x, y, box, width);
    for (const s of row.series) {
      if (hiddenSeries().has(s.key)) continue;
      for (const index of panel.arms) {
        const series = data.arms[index].series[s.key];
        if (!series || (view.overlaid && hidden.arms.has(index))) continue;
        paint(
          c,
          s,
          thinned(series, width),
          lineEnd(data.arms[index], s.key),
          view.overlaid ? armColor(index) : colors[s.key],
          x,
          y,
          box,
          width,
        );
      }
    }
    c.restore();
    if (!row.series.some((s) => panel.arms.some((index) => data.arms[index].series[s.key]))) {
      c.fillStyle = colors.muted;
      c.textAlign = "center";
      c.textBaseline = "middle";
      c.fillText("no data", width / 2, (box.top + box.bottom) / 2);
    }
    c.strokeStyle = colors.frame;
    c.lineWidth = 1;
    c.beginPath();
    c.moveTo(0.5, box.top);
    c.lineTo(0.5, box.bottom + 0.5);
    c.lineTo(width, box.bottom + 0.5);
    c.stroke();
    if (!view.overlaid) {
      c.strokeStyle = colors.faint;
      c.fillStyle = colors.muted;
      c.setLineDash([4, 3]);
      c.textBaseline = "alphabetic";
      c.beginPath();
      for (const [ms] of data.arms[panel.arms[0]].events) {
        const at = x(ms);
        const label = labels.find((l) => Math.abs(l.x - at) < 1e-6);
        if (at < 0 || at > width) continue;
        c.moveTo(
          at,
          panel.strip
            ? box.top -
                (Math.max(0, ...labels.filter((l) => Math.abs(l.x - at) < 1e-6).map((l) => l.lane)) +
                  (label ? 1 : 0)) *
                  LANE
            : box.top,
        );
        c.lineTo(at, box.bottom);
      }
      c.stroke();
      c.setLineDash([]);
      if (panel.strip)
        for (const l of labels) {
          c.globalAlpha = 0.85;
          c.fillStyle = colors.ground;
          c.fillRect(l.from + 2, box.top - 17 - l.lane * LANE, l.to - l.from - 5, 14);
          c.globalAlpha = 1;
          c.fillStyle = colors.muted;
          c.textAlign = l.flipped ? "right" : "left";
          c.fillText(l.text, l.flipped ? l.x - 4 : l.from + 4, box.top - 5 - l.lane * LANE);
        }
    }
    if (panel.last) {
      c.fillStyle = colors.muted;
      c.textBaseline = "top";
      let taken = -Infinity;
      for (const [ms, label] of times) {
        const wide = c.measureText(label).width;
        const from = Math.max(0, Math.min(width - wide, x(ms) - wide / 2));
        // The last label is moved to the left so that it is not cut off, which may leave no room for it.
        if (from < taken + 6) continue;
        taken = from + wide;
        c.textAlign = "left";
        c.fillText(label, from, box.bottom + 7);
      }
      if (panel === panel.axis.members[panel.axis.members.length - 1]) {
        c.textAlign = "right";
        c.fillStyle = colors.faint;
        c.fillText(data.since, width, box.bottom + 24);
      }
    }
  };

  /**
   * Paints a series.
   * @type {(c: Context, s: SeriesInfo, series: Series, end: number, color: string, x: Scale, y: Scale, box: Box, width: number) => void}
   */
  const paint = (c, s, { times, values }, end, color, x, y, box, width) => {
    const held = isHeld(s);
    const start = Math.max(0, upto(times, view.from) - (held ? 1 : 0));
    const stop = Math.min(times.length, upto(times, view.to) + 1);
    const seen = stop - start;
    c.fillStyle = c.strokeStyle = color;
    if (s.kind === "dots") {
      const large = seen < 600;
      const radius = seen < 250 ? 2.6 : seen < 900 ? 2 : 1.5;
      let lastX = -9;
      let lastY = -9;
      c.beginPath();
      for (let i = Math.max(0, start - 1); i < stop; i++) {
        const at = x(times[i]);
        const to = y(values[i]);
        if (Math.abs(at - lastX) < 0.5 && Math.abs(to - lastY) < 0.5) continue;
        lastX = at;
        lastY = to;
        if (large) {
          c.moveTo(at + radius, to);
          c.arc(at, to, radius, 0, 6.2832);
        } else c.rect(at - 1.2, to - 1.2, 2.4, 2.4);
      }
      c.fill();
    } else if (s.kind === "crosses") {
      const arm = seen < 100 ? 4 : 2.6;
      let lastX = -9;
      let lastY = -9;
      c.lineWidth = seen < 100 ? 1.6 : 1.2;
      c.beginPath();
      for (let i = start; i < stop; i++) {
        const at = x(times[i]);
        const to = y(values[i]);
        if (Math.abs(at - lastX) + Math.abs(to - lastY) < arm * 1.6) continue;
        lastX = at;
        lastY = to;
        c.moveTo(at - arm, to - arm);
        c.lineTo(at + arm, to + arm);
        c.moveTo(at + arm, to - arm);
        c.lineTo(at - arm, to + arm);
      }
      c.stroke();
    } else if (seen > 0) {
      // Steps: of each column of pixels the first, lowest, highest and last value.
      c.lineWidth = s.kind === "area" && !view.overlaid ? 1 : 1.6;
      c.lineJoin = "round";
      const path = new Path2D();
      let column = NaN;
      let low;
      let high;
      let lastY;
      let open = false;
      let firstX = 0;
      let lastX = 0;
      const close = () => {
        if (open) {
          path.lineTo(column, low);
          path.lineTo(column, high);
          path.lineTo(column, lastY);
        }
      };
      for (let i = start; i < stop; i++) {
        const at = Math.max(-2, x(times[i]));
        const to = y(values[i]);
        const pixel = Math.round(at);
        if (!open) {
          path.moveTo(pixel, to);
          firstX = column = pixel;
          low = high = lastY = to;
          open = true;
          continue;
        }
        if (pixel !== column) {
          close();
          path.lineTo(pixel, lastY);
          low = high = lastY;
          column = pixel;
        }
        low = Math.max(low, to);
        high = Math.min(high, to);
        lastY = to;
        lastX = pixel;
      }
      close();
      lastX = Math.max(column, Math.min(width + 2, x(end)));
      path.lineTo(lastX, lastY);
      if (s.kind === "dashed") c.setLineDash([5, 3]);
      c.stroke(path);
      c.setLineDash([]);
      if (s.kind === "area" && !view.overlaid) {
        path.lineTo(lastX, y(0));
        path.lineTo(firstX, y(0));
        path.closePath();
        c.globalAlpha = 0.2;
        c.fill(path);
        c.globalAlpha = 1;
      }
    }
  };

  /**
   * Paints the guide lines.
   * @type {(c: Context, panel: Panel, x: Scale, y: Scale, box: Box, width: number) => void}
   */
  const guide = (c, panel, x, y, box, width) => {
    /**
     * The number of points, steps and lines of events of the panel in a rectangle.
     * @type {(left: number, top: number, right: number, bottom: number) => number}
     */
    const covered = (left, top, right, bottom) => {
      let count = 0;
      const time = (at) => view.from + (at / width) * (view.to - view.from);
      if (!view.overlaid)
        for (const [ms] of data.arms[panel.arms[0]].events) if (x(ms) >= left && x(ms) <= right) count++;
      for (const s of panel.row.series) {
        if (hiddenSeries().has(s.key)) continue;
        const held = isHeld(s);
        for (const index of panel.arms) {
          const series = data.arms[index].series[s.key];
          if (!series || (view.overlaid && hidden.arms.has(index))) continue;
          const { times, values } = thinned(series, width);
          let i = upto(times, time(left));
          let before = held && i > 0 ? y(values[i - 1]) : NaN;
          if (before >= top && before <= bottom) count++;
          for (const end = time(right); i < times.length && times[i] <= end; i++) {
            const at = y(values[i]);
            if (!(before === before) || !held) before = at;
            if (Math.min(before, at) <= bottom && Math.max(before, at) >= top) count++;
            before = at;
          }
        }
      }
      return count;
    };
    /**
     * Writes at the first of these places, each the left end of a baseline, that is in the panel and covers the fewest data.
     * @type {(text: string, places: [number, number][]) => void}
     */
    const note = (text, places) => {
      c.font = `11.5px ${FONT}`;
      c.textAlign = "left";
      c.textBaseline = "alphabetic";
      const size = c.measureText(text).width;
      let best = null;
      for (const [at, to] of places) {
        if (at < 0 || at + size > width || to - 10 < box.top || to + 3 > box.bottom) continue;
        const count = covered(at - 2, to - 10, at + size + 2, to + 3);
        if (!best || count < best.count) best = { at, to, count };
      }
      if (!best) return;
      c.globalAlpha = 0.8;
      c.fillStyle = colors.ground;
      c.fillRect(best.at - 3, best.to - 11, size + 6, 15);
      c.globalAlpha = 1;
      c.fillStyle = colors.muted;
      c.fillText(text, best.at, best.to);
    };
    /** @type {(text: string) => number} */
    const measured = (text) => {
      c.font = `11.5px ${FONT}`;
      return c.measureText(text).width;
    };
    const first = panel === panel.axis.members[0];
    c.strokeStyle = colors.muted;
    c.lineWidth = 1;
    c.setLineDash([5, 4]);
    const level = panel.row.level;
    if (level && y(level[0]) >= box.top && y(level[0]) <= box.bottom) {
      const at = Math.round(y(level[0])) + 0.5;
      c.beginPath();
      c.moveTo(0, at);
      c.lineTo(width, at);
      c.stroke();
      if (first) {
        const size = measured(level[1]);
        /** @type {[number, number][]} */
        const places = [at - 5, at + 14].flatMap((to) =>
          [0, 0.5, 1, 0.25, 0.75, 0.125, 0.375, 0.625, 0.875].map((share) => [7 + (width - size - 14) * share, to]),
        );
        note(level[1], places);
      }
    }
    if (panel.row.key === "bytes") {
      panel.arms.forEach((index, n) => {
        const slope = data.arms[index].slope;
        if (!slope || (view.overlaid && n > 0)) return;
        const [from, rate] = slope;
        const value = (ms) => (ms - from) * rate;
        let to = view.to;
        if (value(to) > panel.axis.scale.hi) to = from + panel.axis.scale.hi / rate;
        if (to <= from) return;
        c.beginPath();
        c.moveTo(x(from), y(0));
        c.lineTo(x(to), y(value(to)));
        c.stroke();
        if (first) {
          const label = shown(data.rate, "b/s");
          const size = measured(label);
          /** @type {[number, number][]} */
          const places = [1, 0.8, 0.6, 0.4].flatMap((share) => {
            const ms = from + (to - from) * share;
            return [
              [x(ms) - 9 - size, y(value(ms)) + 13],
              [x(ms) + 8, y(value(ms)) + 13],
            ];
          });
          note(label, places);
        }
      });
    }
    c.setLineDash([]);
  };

  /** Paints the cursor and the values at it in all panels. */
  const overlays = () => {
    for (const panel of panels) {
      const { y, box } = panel.axis.scale;
      const width = panel.axis.width;
      const c = prepared(panel.top, width, box.height);
      const x = (ms) => ((ms - view.from) / (view.to - view.from)) * width;
      if (view.select) {
        const [a, b] = view.select.map(x).sort((p, q) => p - q);
        c.fillStyle = colors.select;
        c.fillRect(a, box.top, b - a, box.bottom - box.top);
      }
      // The pointer, else the moment that plays.
      const cursor = view.cursor ?? view.moment;
      if (cursor === null || cursor < view.from || cursor > view.to) continue;
      const at = Math.round(x(cursor)) + 0.5;
      c.strokeStyle = colors.ink;
      c.globalAlpha = 0.55;
      c.lineWidth = 1;
      c.beginPath();
      c.moveTo(at, box.top);
      c.lineTo(at, box.bottom);
      c.stroke();
      c.globalAlpha = 1;
      for (const s of panel.row.series) {
        if (s.kind === "crosses" || hiddenSeries().has(s.key)) continue;
        for (const index of panel.arms) {
          const series = data.arms[index].series[s.key];
          const n =
            series && !(view.overlaid && hidden.arms.has(index)) ? upto(series.times, cursor) : 0;
          if (!n) continue;
          const to = y(series.values[n - 1]);
          if (to < box.top - 1 || to > box.bottom + 1) continue;
          c.beginPath();
          c.arc(at, to, 4, 0, 7);
          c.fillStyle = view.overlaid ? armColor(index) : colors[s.key];
          c.fill();
          c.lineWidth = 1.5;
          c.strokeStyle = colors.ground;
          c.stroke();
        }
      }
      if (panel.last) {
        const text = shown(cursor, "ms", 4);
        const size = c.measureText(text).width + 12;
        const left = Math.max(0, Math.min(width - size, at - size / 2));
        c.fillStyle = colors.ink;
        c.beginPath();
        c.roundRect(left, box.bottom + 4, size, 19, 4);
        c.fill();
        c.fillStyle = colors.ground;
        c.textAlign = "center";
        c.textBaseline = "middle";
        c.fillText(text, left + size / 2, box.bottom + 14);
      }
    }
  };

  /**
   * Names for the tooltip, where the label in the legend is short because it is beside the title of its row.
   * @type {Record<string, string>}
   */
  const LONG = {
    queue: "queue",
    marks: "marked so far",
    drops: "dropped so far",
    lost: "declared lost so far",
    connection_limit: "connection limit allows",
    stream_limit: "stream limit allows",
    rate: "rate at the bottleneck",
    others: "rate of other traffic",
    pacing: "pacing rate",
    rtt: "round trip",
    rtt_smoothed: "round trip, smoothed",
    delay_up: "delay to the server",
    delay_down: "delay to the client",
  };
  /**
   * Shows the tooltip beside the pointer.
   * @type {(px: number, py: number) => void}
   */
  const showTip = (px, py) => {
    tip.textContent = "";
    const arms = view.overlaid
      ? data.arms.map((_, i) => i).filter((i) => !hidden.arms.has(i))
      : blocks()
          .map((b) => b.flat())
          .find((b) => b.includes(view.here)) || [0];
    const table = make("table", tip);
    const ms = view.cursor;
    make("caption", table, { textContent: shown(ms, "ms", 5) });
    const head = make("tr", table);
    make("th", head);
    for (const i of arms) {
      const th = make("th", head, {
        textContent: data.arms[i].label,
        className: arms.length > 1 && i === view.here && !view.overlaid ? "here" : "",
      });
      if (view.overlaid) th.style.color = armColor(i);
    }
    for (const row of data.rows)
      for (const s of row.series) {
        if (hiddenSeries().has(s.key)) continue;
        const tr = make("tr", table);
        const name = make("td", tr);
        const counts = s.kind === "crosses";
        if (!view.overlaid) make("i", name).style.background = colors[s.key];
        name.append(LONG[s.key] || s.label);
        for (const i of arms) {
          const series = data.arms[i].series[s.key];
          const n = series ? upto(series.times, ms) : 0;
          let value = n ? series.values[n - 1] : 0;
          if (isLimit(s)) {
            // What may still be sent: the limit is drawn at the bytes of packets at which it is reached.
            const sent = data.arms[i].series.sent || data.arms[i].series.arrived;
            const m = sent ? upto(sent.times, ms) : 0;
            value = Math.max(0, value - (m ? sent.values[m - 1] : 0));
          }
          make("td", tr, {
            textContent: counts ? (n ? `${n}` : "–") : n ? shown(value, row.unit) : "–",
          });
        }
      }
    /** @type {(i: number) => string} */
    const state = (i) =>
      SHADES.filter(([key]) => data.arms[i][key].some(([a, b]) => a <= ms && ms <= b))
        .map(([, , name]) => name)
        .join(", ");
    if (arms.some(state)) {
      const tr = make("tr", table);
      make("td", tr, { textContent: "state" });
      for (const i of arms) make("td", tr, { textContent: state(i) });
    }
    const { width, height } = tip.getBoundingClientRect();
    const w = document.documentElement.clientWidth;
    const h = window.innerHeight;
    const right = px + 22 + width < w;
    const beside = right || px - 22 - width > 0;
    const left = right ? px + 22 : beside ? px - 22 - width : Math.max(4, (w - width) / 2);
    // If there is no room beside the pointer, the tooltip is at the far end of the screen.
    const top =
      beside && w >= 560
        ? Math.max(4, Math.min(h - height - 4, py - height / 3))
        : py > h / 2
          ? 6
          : h - height - 6;
    tip.style.left = `${left}px`;
    tip.style.top = `${top}px`;
    tip.style.visibility = "visible";
  };
  /** Hides cursor and tooltip. */
  const leave = () => {
    view.cursor = null;
    tip.style.visibility = "hidden";
    refresh();
  };

  // ---- Navigation -------------------------------------------------------------------------------------------------

  /** @type {(from: number, to: number) => void} */
  const show = (from, to) => {
    const span = Math.max(CLOSEST, Math.min(END, to - from));
    const middle = (from + to) / 2;
    from = Math.max(0, Math.min(END - span, Math.abs(to - from - span) > 1e-9 ? middle - span / 2 : from));
    view.from = from;
    view.to = Math.min(END, from + span);
    refresh();
  };
  /** @type {(factor: number, around: number) => void} */
  const zoom = (factor, around) =>
    show(around - (around - view.from) * factor, around + (view.to - around) * factor);
  const reset = () => show(0, END);

  /** @param {Panel} panel */
  const listen = (panel) => {
    const { div } = panel;
    /** @type {Map<number, number>} */
    const touches = new Map();
    /** @type {{ x: number, time: number, from: number, to: number, pan: boolean } | null} */
    let drag = null;
    /** @type {{ span: number, middle: number, from: number, to: number } | null} */
    let pinch = null;
    /** @type {(e: MouseEvent) => number} */
    const time = (e) => {
      const r = div.getBoundingClientRect();
      return view.from + ((e.clientX - r.left) / r.width) * (view.to - view.from);
    };
    /** @param {MouseEvent} e */
    const hover = (e) => {
      view.cursor = Math.max(view.from, Math.min(view.to, time(e)));
      view.here = panel.arms[0];
      showTip(e.clientX, e.clientY);
      if (!asked) {
        asked = true;
        requestAnimationFrame(() => {
          asked = false;
          overlays();
        });
      }
    };
    div.addEventListener(
      "wheel",
      (e) => {
        const whole = view.from <= 0 && view.to >= END;
        if (Math.abs(e.deltaX) > Math.abs(e.deltaY)) {
          if (whole) return;
          const by = (e.deltaX / div.clientWidth) * (view.to - view.from);
          show(view.from + by, view.to + by);
        } else {
          if (whole && e.deltaY > 0) return;
          zoom(Math.exp(Math.max(-0.5, Math.min(0.5, e.deltaY * (e.deltaMode ? 0.05 : 0.0016)))), time(e));
        }
        e.preventDefault();
      },
      { passive: false },
    );
    div.addEventListener("pointerdown", (e) => {
      if (e.pointerType === "touch") {
        touches.set(e.pointerId, e.clientX);
        if (touches.size === 2) {
          const [a, b] = [...touches.values()];
          pinch = { span: Math.max(20, Math.abs(a - b)), middle: (a + b) / 2, from: view.from, to: view.to };
        }
        hover(e);
        return;
      }
      if (e.button !== 0) return;
      div.setPointerCapture(e.pointerId);
      drag = { x: e.clientX, time: time(e), from: view.from, to: view.to, pan: e.shiftKey };
    });
    div.addEventListener("pointermove", (e) => {
      if (touches.has(e.pointerId)) {
        touches.set(e.pointerId, e.clientX);
        if (pinch && touches.size === 2) {
          const [a, b] = [...touches.values()];
          const r = div.getBoundingClientRect();
          const span = ((pinch.to - pinch.from) * pinch.span) / Math.max(20, Math.abs(a - b));
          const fixed = pinch.from + ((pinch.middle - r.left) / r.width) * (pinch.to - pinch.from);
          const from = fixed - (((a + b) / 2 - r.left) / r.width) * span;
          show(from, from + span);
          return;
        }
      }
      if (drag && drag.pan) {
        const by = ((drag.x - e.clientX) / div.clientWidth) * (drag.to - drag.from);
        show(drag.from + by, drag.to + by);
      } else if (drag) view.select = [drag.time, Math.max(view.from, Math.min(view.to, time(e)))];
      hover(e);
    });
    const up = (e) => {
      touches.delete(e.pointerId);
      if (touches.size < 2) pinch = null;
      if (drag && !drag.pan && view.select && Math.abs(e.clientX - drag.x) > 6)
        show(Math.min(...view.select), Math.max(...view.select));
      drag = null;
      view.select = null;
      refresh();
    };
    div.addEventListener("pointerup", up);
    div.addEventListener("pointercancel", up);
    div.addEventListener("pointerleave", (e) => {
      if (e.pointerType !== "touch") leave();
    });
    div.addEventListener("dblclick", reset);
  };
  document.addEventListener("pointerdown", (e) => {
    if (e.target instanceof Element && !e.target.closest(".panel")) leave();
  });

  root.addEventListener("keydown", (e) => {
    if (e.target !== root || e.ctrlKey || e.metaKey || e.altKey) return;
    const span = view.to - view.from;
    const middle = view.cursor ?? (view.from + view.to) / 2;
    const way = e.key === "ArrowLeft" ? -1 : 1;
    if (e.key === "ArrowLeft" || e.key === "ArrowRight") {
      if (e.shiftKey) show(view.from + (way * span) / 10, view.to + (way * span) / 10);
      else {
        view.cursor = Math.max(view.from, Math.min(view.to, middle + (way * span) / 200));
        const panel = panels.find((p) => p.arms.includes(view.here)) || panels[0];
        const r = panel.div.getBoundingClientRect();
        showTip(
          r.left + ((view.cursor - view.from) / span) * r.width,
          Math.max(60, Math.min(window.innerHeight - 60, r.top + r.height / 2)),
        );
        refresh();
      }
    } else if (e.key === "+" || e.key === "=") zoom(0.7, middle);
    else if (e.key === "-" || e.key === "_") zoom(1 / 0.7, middle);
    else if (e.key === "0" || e.key === "Home") reset();
    else if (e.key === "Escape") {
      leave();
      reset();
    } else return;
    e.preventDefault();
  });

  // ---- Tools, themes, paper -----------------------------------------------------------------------------------------

  const tools = document.querySelector(".tools");
  /** @type {(label: string, title: string, act: () => void) => HTMLButtonElement} */
  const tool = (label, title, act) => {
    const b = make("button", tools, { type: "button", textContent: label, title });
    b.onclick = act;
    return b;
  };
  if (many) {
    const over = tool("Overlay", "All arms in one panel, one colour each", () => {
      view.overlaid = !view.overlaid;
      over.setAttribute("aria-pressed", String(view.overlaid));
      leave();
    });
    over.setAttribute("aria-pressed", "false");
  }
  tool("+", "Zoom in", () => zoom(0.6, (view.from + view.to) / 2));
  tool("−", "Zoom out", () => zoom(1 / 0.6, (view.from + view.to) / 2));
  tool("All", "Reset the zoom", reset);
  const help = /** @type {HTMLElement} */ (document.querySelector(".help"));
  help.hidden = false;

  const themed = () => {
    readColors();
    built = "";
    refresh();
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", themed);
  // The static figure is printed. It is in `noscript`, so the page shows it without a script.
  const figure = document.querySelector("noscript");
  window.addEventListener("beforeprint", () => {
    if (!document.querySelector("figure")) make("figure", document.body).innerHTML = figure.textContent;
  });
  window.addEventListener("scroll", refresh, { passive: true });
  new ResizeObserver(refresh).observe(root);
  readColors();
  draw();
  // For `play.js`.
  Object.assign(globalThis, {
    transfers: {
      varints,
      data,
      END,
      shown,
      upto,
      make,
      prepared,
      colors: () => colors,
      /** Moves the cursor of all panels. @param {number} ms */
      move: (ms) => {
        view.moment = ms;
        overlays();
      },
    },
  });
})();
