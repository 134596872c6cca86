// A page of transfers in a real browser: the scrubber moves, and what is drawn matches the data; keys, phone, dark, motion, paper.
//
//   NODE_PATH=DIR/node_modules node crates/report/tests/browser/play.mjs transfer.html qlog.html [folder for screenshots]
//
// `transfer.html` is of `lastbyte sim --plot`, `qlog.html` of `lastbyte plot` of the files of a sender and its client.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import assert from "node:assert/strict";

const { chromium } = createRequire(import.meta.url)("playwright-core");
const [file, qlog, folder] = process.argv.slice(2);
if (!qlog) throw new Error("which pages? node play.mjs transfer.html qlog.html [folder for screenshots]");
if (folder) mkdirSync(folder, { recursive: true });

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM || "/usr/bin/chromium",
  args: ["--no-sandbox", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});

// A page that must not complain, nor ask for anything but itself.
const open = async (name, hash, options) => {
  const url = pathToFileURL(resolve(name)).href;
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const complaints = [];
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("request", (request) => request.url().split("#")[0] !== url && complaints.push(`asks for ${request.url()}`));
  await page.goto(url + hash);
  const close = async () => {
    assert.deepEqual(complaints, []);
    await context.close();
  };
  const shot = (shotName) => folder && page.screenshot({ path: join(folder, `${shotName}.png`) });
  return { page, close, shot };
};
const desk = { viewport: { width: 1280, height: 900 }, colorScheme: "light" };
const move = (page, ms) =>
  page.locator("#play input").evaluate((input, to) => {
    input.step = "any";
    input.value = to;
    input.dispatchEvent(new Event("input"));
  }, ms);
const drawn = (page) =>
  page.locator("#play .scene p").evaluateAll((all) => all.map((one) => Object.fromEntries(Object.entries(one.dataset).map(([k, v]) => [k, Number(v)]))));
const moment = (page) => page.locator("#play input").evaluate((input) => Number(input.value));

// The packets of each arm, from the data of the page: count, and times in milliseconds.
const packets = (page) =>
  page.evaluate(() =>
    JSON.parse(document.getElementById("data").textContent).arms.map((arm) => {
      const bytes = Uint8Array.from(atob(arm.packets[2]), (c) => c.charCodeAt(0));
      const numbers = [];
      let sum = 0n;
      let bits = 0n;
      for (const byte of bytes) {
        sum |= BigInt(byte & 127) << bits;
        bits += 7n;
        if (byte < 128) {
          numbers.push(Number((sum >> 1n) ^ -(sum & 1n)));
          sum = bits = 0n;
        }
      }
      const all = [];
      let sent = 0;
      for (let i = 0; i < numbers.length; i += 9) {
        const [count, step, queued, served, dropped, arrived, ackSent, acked] = numbers.slice(i, i + 8);
        sent += step;
        const after = (from, span) => (span ? (from ?? sent) + span - 1 : null);
        const q = after(sent, queued);
        const s = after(q, served);
        const a = after(s, arrived);
        const k = after(a, ackSent);
        all.push({ count, sent, queued: q, served: s, dropped: after(sent, dropped), arrived: a, ackSent: k, acked: after(k, acked) });
      }
      return all;
    }),
  );

// On a desk: what is drawn at two moments is what the data have.
let middle;
{
  const { page, close, shot } = await open(file, "", desk);
  const arms = await packets(page);
  const end = Math.max(...arms.flat().map((one) => one.sent)) / 1000;
  middle = Math.round(end * 0.6);
  assert.equal(await moment(page), 0, "nothing plays by itself");
  for (const ms of [Math.round(end * 0.35), middle]) {
    await move(page, ms);
    const at = await drawn(page);
    assert.equal(at.length, arms.length);
    arms.forEach((all, arm) => {
      const now = ms * 1000;
      const past = (time) => time !== null && time <= now;
      const sum = (wanted) => all.filter((one) => one.sent <= now && wanted(one)).reduce((total, one) => total + one.count, 0);
      const gone = (one) => past(one.dropped) || past(one.arrived);
      const waits = (one) => !gone(one) && past(one.queued) && !past(one.served);
      const expected = {
        sent: sum(() => true),
        dropped: sum((one) => past(one.dropped)),
        arrived: sum((one) => !past(one.dropped) && past(one.arrived)),
        queue: sum(waits),
        pipe: sum((one) => !gone(one) && !waits(one)),
        acks: sum((one) => !past(one.dropped) && past(one.arrived) && past(one.ackSent) && one.acked > now),
      };
      for (const [key, count] of Object.entries(expected)) assert.equal(at[arm][key], count, `${key} of arm ${arm} at ${ms} ms`);
      assert.equal(at[arm].sent, at[arm].arrived + at[arm].dropped + at[arm].pipe + at[arm].queue);
      assert.ok(at[arm].sent > 10);
    });
    assert.match(await page.locator("#play .scene span").first().innerText(), /[a-z]/, "the phase has a name");
    await shot(`play-${ms}`);
  }
  // The drawing is not empty.
  const inked = await page.locator("#play canvas").first().evaluate((canvas) =>
    canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.filter((_, i) => i % 4 === 3).filter(Boolean).length,
  );
  assert.ok(inked > 500, `${inked} pixels`);
  // Keys: arrows move, space plays and pauses, + and - change the speed.
  await page.locator("#play").focus();
  await page.keyboard.press("ArrowRight");
  assert.ok((await moment(page)) > middle);
  await page.keyboard.press("ArrowLeft");
  const speed = () => page.locator("#play select").evaluate((select) => select.selectedIndex);
  const before = await speed();
  await page.keyboard.press("+");
  assert.equal(await speed(), before + 1);
  await page.keyboard.press("-");
  assert.equal(await speed(), before);
  const from = await moment(page);
  await page.keyboard.press("Space");
  await page.waitForFunction((was) => Number(document.querySelector("#play input").value) > was, from);
  assert.match(await page.locator("#play button").innerText(), /Pause/);
  await page.keyboard.press("Space");
  assert.match(await page.locator("#play button").innerText(), /Play/);
  await close();
}

// A moment in the address; dark, and a phone.
for (const [name, options] of [
  ["dark", { ...desk, colorScheme: "dark" }],
  ["phone", { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, hasTouch: true, isMobile: true }],
  ["calm", { ...desk, reducedMotion: "reduce" }],
]) {
  const { page, close, shot } = await open(file, `#t=${middle}ms`, options);
  assert.ok(Math.abs((await moment(page)) - middle) < 1);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${name}: nothing is wider than the screen`);
  await shot(`play-${name}`);
  await page.evaluate(() => (location.hash = "#t=%"));
  await close();
}

// On paper the moment is there; without the program, the figure.
{
  const { page, close, shot } = await open(file, `#t=${middle}ms`, desk);
  await page.emulateMedia({ media: "print" });
  assert.ok(await page.locator("#play canvas").first().isVisible());
  assert.ok(!(await page.locator("#play button").isVisible()));
  await shot("play-paper");
  await close();
}
{
  const { page, close } = await open(file, "", { ...desk, javaScriptEnabled: false });
  assert.ok(!(await page.locator("#play").isVisible()));
  assert.ok(await page.locator("noscript svg, svg").first().isVisible());
  await close();
}

// qlog files of a sender and of the client of another connection: no queue, and the page says so. The client's has nothing to draw.
{
  const { page, close, shot } = await open(qlog, "", desk);
  for (const text of await page.locator("#play .scene p").allInnerTexts()) assert.match(text, /\w/);
  assert.deepEqual(await page.locator("#play canvas").evaluateAll((all) => all.map((one) => one.offsetHeight > 0)), [true, false]);
  const end = await page.locator("#play input").evaluate((input) => Number(input.max));
  await move(page, end / 2);
  assert.match(await page.locator("#play .scene p").first().innerText(), /sent, .* in flight, .* acknowledged, \d+ packets? declared lost/);
  assert.match(await page.locator("#play .note").innerText(), /does not show where on the path packets are/);
  await shot("play-qlog");
  await close();
}

await browser.close();
console.log("pages of transfers play");
