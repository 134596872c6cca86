// The page of a comparison in a real browser: no errors, charts there, read-out by pointer, keyboard and finger, dark, narrow,
// on paper, and without its program.
//
//   npm install --prefix DIR playwright-core
//   NODE_PATH=DIR/node_modules node crates/report/tests/browser/page.mjs report.html [folder for screenshots]
//
// The browser is `CHROMIUM`, else /usr/bin/chromium.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import assert from "node:assert/strict";

// `import` knows no NODE_PATH; `require` does.
const { chromium } = createRequire(import.meta.url)("playwright-core");
const [file, folder] = process.argv.slice(2);
if (!file) throw new Error("which page? node page.mjs report.html [folder for screenshots]");
if (folder) mkdirSync(folder, { recursive: true });
const url = pathToFileURL(resolve(file)).href;

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM || "/usr/bin/chromium",
  args: ["--no-sandbox", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});

// A page that must not complain, nor ask for anything but itself.
const open = async (options) => {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const complaints = [];
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("request", (request) => request.url() !== url && complaints.push(`asks for ${request.url()}`));
  await page.goto(url);
  const close = async () => {
    assert.deepEqual(complaints, []);
    await context.close();
  };
  const shot = (name, more = {}) => folder && page.screenshot({ path: join(folder, `${name}.png`), fullPage: true, ...more });
  return { context, page, close, shot };
};
const fits = (page) => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth);
const readout = (page) => page.locator("#all .read").innerText();
const hasLight = (page) =>
  page.evaluate(() => {
    const [r, g, b] = getComputedStyle(document.body).backgroundColor.match(/\d+/g).map(Number);
    return r + g + b > 384;
  });

// On a desk.
{
  const { page, close, shot } = await open({ viewport: { width: 1280, height: 900 }, colorScheme: "light" });
  assert.ok(await hasLight(page));
  assert.ok(await fits(page), "nothing is wider than the window");
  const charts = await page.locator("figure.chart").count();
  assert.ok(charts >= 1, "there are charts");
  for (const svg of await page.locator("figure .plot.wide svg, figure .plot.only svg").all()) {
    const paths = await svg.locator("path").count();
    assert.ok(paths >= 2, "a chart has lines");
    assert.ok((await svg.getAttribute("aria-label")).includes("percentile"), "a chart says in words what it shows");
  }
  // Where the time goes: bars of several parts.
  assert.ok((await page.locator("#parts .plot.wide rect").count()) > 20, "a chart has bars");
  // The pointer moves the read-out, in all charts at once.
  const plot = page.locator("#all .plot.wide svg");
  await plot.scrollIntoViewIfNeeded();
  const before = await readout(page);
  const box = await plot.boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height * 0.3);
  const high = await readout(page);
  assert.notEqual(high, before);
  const shown = await page.locator("#shown").innerText();
  assert.match(shown, /^P[67]\d$/);
  assert.ok((await page.locator("#all .plot.wide .cursor circle").count()) >= 1);
  await shot("desk-hover", { fullPage: false });
  // Keys do.
  const slider = page.locator("#percentile");
  await slider.focus();
  await page.keyboard.press("Home");
  assert.equal(await page.locator("#shown").innerText(), "P1");
  await page.keyboard.press("ArrowRight");
  assert.equal(await page.locator("#shown").innerText(), "P2");
  await page.keyboard.press("End");
  assert.equal(await page.locator("#shown").innerText(), "P99");
  assert.match(await slider.getAttribute("aria-valuetext"), /^P99: .+\s%$/);
  // What the program writes at P50 is what the page had without it.
  await slider.evaluate((input) => { input.value = 50; input.dispatchEvent(new Event("input")); });
  assert.equal(await readout(page), before);
  // A query can be copied.
  await page.locator("#all details.query summary").click();
  const button = page.locator("#all details.query button");
  const query = await page.locator("#all details.query code").innerText();
  assert.match(query, /^lastbyte query /);
  await button.click();
  await page.waitForFunction((b) => /Copied|Selected/.test(b.textContent), await button.elementHandle());
  // All that is a table has a caption and heads of rows and columns; all that can be focused has a name.
  assert.equal(await page.locator(".scroll table:not(:has(caption))").count(), 0);
  const nameless = await page.evaluate(() =>
    [...document.querySelectorAll("button, input, [tabindex='0']:not(pre)")].filter(
      (one) => !(one.getAttribute("aria-label") || one.textContent.trim() || one.labels?.length),
    ).length,
  );
  assert.equal(nameless, 0);
  for (const link of await page.locator("nav a").all()) {
    assert.equal(await page.locator(await link.getAttribute("href")).count(), 1, "a link leads somewhere");
  }
  await page.evaluate(() => scrollTo(0, 0));
  await shot("desk");
  await close();
}

// In the dark.
{
  const { page, close, shot } = await open({ viewport: { width: 1280, height: 900 }, colorScheme: "dark" });
  assert.ok(!(await hasLight(page)));
  const ink = await page.evaluate(() => getComputedStyle(document.querySelector("#all .plot.wide svg text")).fill);
  assert.ok(ink.match(/\d+/g).map(Number).reduce((a, b) => a + b) > 384, `the text of charts is light: ${ink}`);
  await shot("dark");
  await close();
}

// On a phone.
{
  const { page, close, shot } = await open({ viewport: { width: 375, height: 740 }, deviceScaleFactor: 2, hasTouch: true, isMobile: true });
  assert.ok(await fits(page), "nothing is wider than a phone");
  assert.ok(await page.locator("#all .plot.narrow").isVisible());
  assert.ok(!(await page.locator("#all .plot.wide").isVisible()));
  const before = await readout(page);
  const plot = page.locator("#all .plot.narrow svg");
  await plot.scrollIntoViewIfNeeded();
  const box = await plot.boundingBox();
  await page.touchscreen.tap(box.x + box.width / 2, box.y + box.height * 0.25);
  assert.notEqual(await readout(page), before, "a finger moves the read-out");
  const smallest = await page.evaluate(() => {
    const svg = document.querySelector("#all .plot.narrow svg");
    const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
    return Math.min(...[...svg.querySelectorAll("text")].map((text) => Number(text.getAttribute("font-size")) * scale));
  });
  assert.ok(smallest >= 10, `the text of charts can be read: ${smallest} px`);
  await shot("phone");
  await close();
}

// On paper, and without the program.
{
  const { page, close, shot } = await open({ viewport: { width: 794, height: 1123 }, colorScheme: "dark", javaScriptEnabled: false });
  assert.ok(!(await page.locator(".slider").isVisible()));
  assert.match(await readout(page), /%/);
  await page.emulateMedia({ media: "print", colorScheme: "light" });
  assert.ok(await hasLight(page));
  assert.ok(await page.locator("#all .plot.wide").isVisible());
  const cut = await page.evaluate(() =>
    [...document.querySelectorAll("table")].filter((table) => table.checkVisibility() && table.scrollWidth > table.parentElement.clientWidth + 1).length,
  );
  assert.equal(cut, 0, "no table is cut off on paper");
  if (folder) await page.pdf({ path: join(folder, "paper.pdf"), format: "A4", margin: { top: "14mm", bottom: "14mm", left: "12mm", right: "12mm" } });
  await shot("paper");
  await close();
}

await browser.close();
console.log("the page holds in a browser");
