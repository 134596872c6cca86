// Plays the transfers: a moment that moves, and where packets are at it. Uses what `page.js` leaves in `transfers`. No library.
"use strict";
(() => {
  const { data, varints, END, shown, upto, make, prepared, colors, move } = /** @type {any} */ (globalThis).transfers;
  const section = /** @type {HTMLElement} */ (document.getElementById("play"));
  const calm = matchMedia("(prefers-reduced-motion: reduce)");

  /**
   * A group of packets with the same fate; see `play.rs`. Times are in milliseconds, and NaN if they never come.
   * @typedef {{ count: number, sent: number, queued: number, served: number, dropped: number, arrived: number, ackSent: number, acked: number, lost: number }} Group
   */
  /** @type {(packed: any) => Group[]} */
  const unpack = ([, count, text]) => {
    const varint = varints(text);
    // Whole microseconds, so that sums are exact.
    let sent = 0;
    const since = (from) => {
      const span = varint();
      return span ? (isNaN(from) ? sent : from) + span - 1 : NaN;
    };
    return Array.from({ length: count }, () => {
      const members = varint();
      sent += varint();
      const queued = since(sent);
      const served = since(queued);
      const dropped = since(sent);
      const arrived = since(served);
      const ackSent = since(arrived);
      const group = { sent, queued, served, dropped, arrived, ackSent, acked: since(ackSent), lost: since(sent), count: 0 };
      for (const key in group) group[key] /= 1000;
      return Object.assign(group, { count: members });
    });
  };

  const arms = data.arms.map((arm) => {
    const groups = arm.packets ? unpack(arm.packets) : [];
    // How long packets and acknowledgments take that have no end in the data.
    const typical = groups.find((g) => g.arrived >= g.served);
    return { arm, groups, largest: arm.packets ? arm.packets[0] : 0, flight: typical ? typical.arrived - typical.served : END };
  });
  const hasGroups = arms.some((one) => one.largest > 1);

  // ---- Controls -----------------------------------------------------------------------------------------------------

  section.hidden = false;
  const bar = make("div", section, { className: "bar" });
  const button = make("button", bar, { type: "button", textContent: "▶ Play" });
  const range = make("input", bar, { type: "range", min: "0", max: String(END), step: String(END / 1000), value: "0" });
  range.setAttribute("aria-label", "Moment");
  const clock = make("output", bar);
  const label = make("label", bar, { textContent: "1 s shows " });
  const speed = make("select", label);
  // The whole transfer takes 80, 40, 20, 10 or 5 seconds; or real time.
  for (const seconds of [80, 40, 20, 10, 5])
    make("option", speed, { value: String(END / seconds), textContent: shown(END / seconds, "ms", 2) });
  make("option", speed, { value: "1000", textContent: "1 s (real time)" });
  speed.selectedIndex = 2;
  const scenes = make("div", section, { className: "scenes" });
  for (const one of arms) {
    const div = make("div", scenes, { className: "scene" });
    make("b", div, { textContent: one.arm.label });
    one.phase = make("span", div);
    one.canvas = make("canvas", div);
    if (!one.groups.length) one.canvas.style.height = "75px";
    // A client's file does not have what is in flight.
    if (!one.groups.length && !one.arm.series.in_flight) one.canvas.style.display = "none";
    one.canvas.setAttribute("role", "img");
    one.text = make("p", div);
  }
  const notes = [];
  if (hasGroups)
    notes.push(`A mark is a group of up to ${Math.max(...arms.map((one) => one.largest))} packets that follow each other, and counts are of whole groups.`);
  if (arms.some((one) => !one.groups.length))
    notes.push("A qlog file of one endpoint does not show where on the path packets are: only what is in flight, acknowledged and declared lost.");
  notes.push("Keys: space plays, ← → move, + − change the speed. #t=120ms at the end of the address opens the page at this moment.");
  make("p", section, { className: "note", textContent: notes.join(" ") });

  // ---- Drawing ------------------------------------------------------------------------------------------------------

  const HEIGHT = 150;
  const FORTH = 44;
  const BACK = 118;
  let now = 0;
  let playing = 0;

  /** @type {(one: any) => string} */
  const phase = ({ arm }) => {
    const known = (arm.phases || []).filter(([from]) => from <= now);
    if (known.length) return known[known.length - 1][1];
    if (arm.recovery.some(([from, to]) => from <= now && now <= to)) return "recovery";
    const is = (wanted) => arm.events.some(([at, name]) => name === wanted && at <= now);
    const isStartup = !is("startup ends") && arm.events.some(([, name]) => name === "startup ends");
    return isStartup ? (is("CSS starts") ? "conservative slow start" : "startup") : "";
  };
  /** The last value of a series. @type {(arm: any, key: string) => number | null} */
  const value = (arm, key) => {
    const series = arm.series[key];
    const n = series ? upto(series.times, now) : 0;
    return n ? series.values[n - 1] : null;
  };
  const frame = (one) => {
    const { arm, groups, canvas } = one;
    const ink = colors();
    const width = canvas.clientWidth;
    const c = prepared(canvas, width, groups.length ? HEIGHT : HEIGHT / 2);
    const left = 16;
    const right = width - 16;
    const middle = groups.length ? left + (right - left) * 0.38 : NaN;
    c.strokeStyle = ink.frame;
    c.lineWidth = 1;
    c.textBaseline = "alphabetic";
    /** A lane with the names of its ends. */
    const lane = (y, start, end) => {
      c.strokeRect(left, y - 9.5, right - left, 19);
      c.fillStyle = ink.muted;
      c.textAlign = "right";
      c.fillText(end, right, y + 22);
      c.textAlign = "left";
      c.fillText(start, left, y + 22);
    };
    /** A packet at a share of the way. */
    const mark = (x, y, color) => {
      c.fillStyle = color;
      c.fillRect(x - 2, y - 6, 4, 12);
    };
    const share = (from, to) => (to > from ? Math.min(1, Math.max(0, (now - from) / (to - from))) : 0);
    const counts = { sent: 0, pipe: 0, queue: 0, arrived: 0, dropped: 0, acks: 0, unknown: 0 };
    if (groups.length) {
      lane(FORTH, "sender", "receiver");
      lane(BACK, "acknowledgments", "");
      for (const g of groups) {
        if (g.sent > now) continue;
        counts.sent += g.count;
        if (g.dropped <= now) {
          counts.dropped += g.count;
          if (!(g.lost <= now)) {
            counts.unknown += g.count;
            // Falls out of the queue, until the sender knows.
            const y = FORTH + 18 + 12 * share(g.dropped, g.dropped + one.flight);
            mark(middle, y, ink.lost);
          }
        } else if (g.arrived <= now) {
          counts.arrived += g.count;
          if (g.ackSent <= now && g.acked > now) {
            counts.acks += g.count;
            mark(right - 3 - (right - left - 6) * share(g.ackSent, g.acked), BACK, ink.acked);
          }
        } else if (g.queued <= now && !(g.served <= now)) counts.queue += g.count;
        else {
          counts.pipe += g.count;
          if (g.served <= now) {
            const end = isNaN(g.arrived) ? g.served + one.flight : g.arrived;
            mark(middle + (right - middle) * share(g.served, end), FORTH, ink.sent);
          } else mark(left + (middle - left) * share(g.sent, isNaN(g.queued) ? g.sent + one.flight : g.queued), FORTH, ink.sent);
        }
      }
      if (counts.unknown) {
        c.fillStyle = ink.lost;
        c.fillText(`${counts.unknown} dropped, not known yet`, middle + 8, FORTH + 36);
      }
      // The queue before the bottleneck, all traffic, and its limit if that is known.
      const depth = value(arm, "queue") ?? 0;
      const row = data.rows.find((r) => r.key === "queue");
      const limit = row ? Math.max(row.level ? row.level[0] : 0, row.extent[1]) : 1;
      const long = (middle - left - 8) * Math.min(1, depth / limit);
      c.fillStyle = ink.queue;
      c.fillRect(middle - 3 - long, FORTH - 8, long, 16);
      c.strokeStyle = ink.ink;
      c.lineWidth = 2;
      c.beginPath();
      c.moveTo(middle, FORTH - 16);
      c.lineTo(middle, FORTH + 16);
      c.stroke();
      c.fillStyle = ink.muted;
      c.textAlign = "center";
      c.fillText(depth ? `bottleneck, queue ${shown(depth, "B")}` : "bottleneck", middle, FORTH - 21);
      one.text.textContent =
        `${counts.sent} packets sent = ${counts.arrived} arrived + ${counts.dropped} dropped + ${counts.pipe} in the pipe + ${counts.queue} in the queue. ` +
        `${counts.acks} of those that arrived: acknowledgment on its way. ${counts.unknown} of the dropped: not yet declared lost.`;
      Object.assign(one.text.dataset, counts);
    } else {
      const flying = value(arm, "in_flight");
      const most = data.rows.find((r) => r.key === "window")?.extent[1];
      if (flying !== null && most) {
        lane(FORTH, "in flight", `scale: ${shown(most, "B")}`);
        c.fillStyle = ink.in_flight;
        c.fillRect(left + 1, FORTH - 8, (right - left - 2) * Math.min(1, flying / most), 16);
      }
      const parts = [];
      /** @type {(key: string, what: string) => void} */
      const add = (key, what) => {
        const bytes = value(arm, key);
        if (bytes !== null) parts.push(`${shown(bytes, "B")} ${what}`);
      };
      add("sent", "sent");
      add("arrived", "received");
      add("in_flight", "in flight");
      add("acked", "acknowledged");
      const lost = arm.series.lost ? upto(arm.series.lost.times, now) : 0;
      if (arm.series.sent) parts.push(`${lost} ${lost === 1 ? "packet" : "packets"} declared lost`);
      one.text.textContent = parts.length ? `${parts.join(", ")}.` : "No bytes yet.";
    }
    one.phase.textContent = phase(one);
  };

  const paint = () => {
    range.value = String(now);
    const text = shown(now, "ms", 4);
    clock.textContent = text;
    range.setAttribute("aria-valuetext", text);
    for (const one of arms) frame(one);
  };
  /** Goes to a moment. @param {number} ms */
  const go = (ms) => {
    now = Math.max(0, Math.min(END, ms));
    section.classList.add("held");
    move(now);
    paint();
  };
  const stop = () => {
    cancelAnimationFrame(playing);
    playing = 0;
    button.textContent = "▶ Play";
  };
  const start = () => {
    if (now >= END) now = 0;
    button.textContent = "❚❚ Pause";
    let last = performance.now();
    const step = (time) => {
      // With reduced motion, the picture changes twice a second.
      if (!calm.matches || time - last > 500) {
        go(now + ((time - last) / 1000) * Number(speed.value));
        last = time;
      }
      if (now >= END) stop();
      else playing = requestAnimationFrame(step);
    };
    playing = requestAnimationFrame(step);
  };
  const toggle = () => (playing ? stop() : start());
  button.onclick = toggle;
  range.addEventListener("input", () => go(Number(range.value)));
  section.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.target === speed) return;
    const faster = e.key === "+" || e.key === "=" ? 1 : e.key === "-" ? -1 : 0;
    if (e.key === " " && e.target !== button) toggle();
    else if (faster) speed.selectedIndex = Math.max(0, Math.min(speed.length - 1, speed.selectedIndex + faster));
    else if ((e.key === "ArrowLeft" || e.key === "ArrowRight") && e.target !== range)
      go(now + ((e.key === "ArrowLeft" ? -1 : 1) * END) / 200);
    else return;
    e.preventDefault();
  });

  /** The moment in the address. */
  const linked = () => {
    const found = /^#t=(\d+(?:\.\d+)?)(us|µs|%C2%B5s|ms|s)$/.exec(location.hash);
    if (found) go(Number(found[1]) * ({ ms: 1, s: 1e3 }[found[2]] ?? 1e-3));
  };
  window.addEventListener("hashchange", linked);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => requestAnimationFrame(paint));
  new ResizeObserver(paint).observe(section);
  paint();
  linked();
})();
