// What hands do on a page: keys, copying, the theme, the slider, comments on lines, notifications. Nothing here decides
// anything, and every page works without it. Text is only ever set as text.

const root = document.documentElement;
const $ = (what, from = document) => from.querySelector(what);
const $$ = (what, from = document) => [...from.querySelectorAll(what)];

// ---- moments: "6m ago", counted on from here

const UNITS = [[86400, "d"], [3600, "h"], [60, "m"], [1, "s"]];
function ago(seconds) {
  if (seconds < 5) return "just now";
  const [size, unit] = UNITS.find(([least]) => seconds >= least);
  return `${Math.floor(seconds / size)}${unit} ago`;
}
function moments() {
  for (const time of $$("time[datetime]")) {
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    if (time.dataset.ago) time.textContent = ago((Date.now() - at) / 1000);
    time.title = at.toLocaleString();
  }
}

// ---- the theme

function turn() {
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  try { localStorage.setItem("tenuto-theme", root.dataset.theme); } catch { /* it lasts for this page */ }
}

// ---- copying

async function copy(button) {
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    button.textContent = "copied";
  } catch {
    const range = document.createRange();
    range.selectNodeContents(button.previousElementSibling);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    button.textContent = "marked";
  }
  setTimeout(() => (button.textContent = "copy"), 1600);
}

// ---- comments on lines: each becomes a line and a comment of the form

function comment(line) {
  const fold = $("#comments");
  if (!fold || !line) return;
  fold.open = true;
  const rows = $$(".comment", fold);
  let row = rows.find((one) => !$("[name=line]", one).value);
  if (!row) {
    row = rows[0].cloneNode(true);
    $$("input", row).forEach((field) => (field.value = ""));
    fold.append(row);
  }
  $("[name=line]", row).value = line;
  const words = $("[name=comment]", row);
  words.focus();
  words.scrollIntoView({ block: "center" });
}

// ---- finding in a log

function find(words) {
  const log = $(".log");
  if (!log) return;
  $$("mark", log).forEach((one) => one.replaceWith(one.textContent));
  log.normalize();
  if (!words) return;
  const walker = document.createTreeWalker(log, NodeFilter.SHOW_TEXT);
  const hits = [];
  for (let node = walker.nextNode(); node && hits.length < 500; node = walker.nextNode()) {
    const at = node.data.toLowerCase().indexOf(words.toLowerCase());
    if (at >= 0) hits.push([node, at]);
  }
  for (const [node, at] of hits) {
    const range = document.createRange();
    range.setStart(node, at);
    range.setEnd(node, at + words.length);
    range.surroundContents(document.createElement("mark"));
  }
  $("mark", log)?.scrollIntoView({ block: "center" });
}

// ---- keys

let last = "";
let here = -1;
const PLACES = { i: "/", r: "/runs", c: "/compare", f: "/figures", m: "/machine" };

function rows() {
  return $$(".item .title, .steps a, #history .seq").filter((one) => one.offsetParent);
}
function step(by) {
  const all = rows();
  if (!all.length) return;
  const at = all.indexOf(document.activeElement);
  here = Math.min(Math.max((at >= 0 ? at : here) + by, 0), all.length - 1);
  all[here].focus();
  all[here].scrollIntoView({ block: "nearest" });
}
function event(by) {
  const slider = $("#at");
  if (!slider) return;
  slider.value = Number(slider.value) + by;
  past(slider);
}
function up() {
  const place = $$(".crumbs a").pop();
  const [, kind, name] = location.pathname.split("/");
  if (place) place.click();
  else if (location.search) location.assign(location.pathname);
  else location.assign(kind === "runs" && name ? "/runs" : "/");
}
const KEYS = {
  j: () => step(1),
  k: () => step(-1),
  "/": () => ($("input[type=search]") || { focus() { location.assign("/runs"); } }).focus(),
  f: () => location.assign("/runs?status=failed"),
  l: () => $('.tabs a[href*="of=output"]')?.click(),
  d: () => $('.tabs a[href*="of=diff"]')?.click() || $(".shown details")?.toggleAttribute("open"),
  "[": () => event(-1),
  "]": () => event(1),
  a: () => { const card = $("#card"); card?.scrollIntoView(); card?.focus(); },
  c: () => { const button = $("#card .copy") || $(".copy"); if (button) copy(button); },
  t: turn,
  "?": () => $("#keys")?.togglePopover(),
  Escape: up,
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (event.target.closest("input, textarea, select, [contenteditable]")) {
    if (event.key === "Escape" && event.target.type !== "range") event.target.blur();
    return;
  }
  if ($("#keys:popover-open") && event.key === "Escape") return;
  const go = last === "g" && PLACES[event.key];
  last = event.key;
  if (go) location.assign(go);
  else if (KEYS[event.key]) {
    event.preventDefault();
    KEYS[event.key]();
  }
});

document.addEventListener("click", (event) => {
  const button = event.target.closest(".copy");
  if (button) return copy(button);
  if (event.target.closest("#theme")) return turn();
  if (event.target.closest("#notify")) return allow();
  const line = event.target.closest("[data-line] .no");
  if (line) {
    event.preventDefault();
    comment(line.closest("[data-line]").dataset.line);
  }
});

// ---- what is asked on the page itself: the address says it, and the sections that differ are asked for

function ask(given) {
  const address = new URL(location.href);
  for (const [name, value] of given) value === "" ? address.searchParams.delete(name) : address.searchParams.set(name, value);
  history.replaceState(null, "", address);
  document.dispatchEvent(new CustomEvent("tenuto:look"));
}
function past(slider) {
  const last = slider.value === slider.max;
  if (last && !document.body.dataset.live) return location.assign(location.pathname); // a page of the past is not live
  $('label[for="at"]').textContent = `event ${slider.value} of ${slider.max}`;
  document.body.classList.toggle("is-past", !last);
  ask([["at", last ? "" : slider.value]]);
}
document.addEventListener("input", (event) => {
  const form = event.target.form;
  if (event.target.id === "at") past(event.target);
  if (event.target.id === "find-in-log") find(event.target.value);
  if (form?.dataset.live) {
    if (event.target.type === "range") event.target.nextElementSibling.value = event.target.value;
    ask(new FormData(form));
  }
});

// ---- a part of the score: drag over it

let from = null;
const place = (music, event) => {
  const box = music.getBoundingClientRect();
  const x = (1120 * (event.clientX - box.left)) / box.width;
  const share = Math.min(Math.max((x - 196) / (1120 - 196 - 14), 0), 1);
  return Math.round(Number(music.dataset.left) + share * (music.dataset.right - music.dataset.left));
};
document.addEventListener("pointerdown", (event) => {
  const music = event.target.closest?.(".sheet-music");
  if (music && event.pointerType === "mouse" && event.button === 0) from = { music, at: place(music, event), x: event.clientX };
});
document.addEventListener("pointerup", (event) => {
  if (from && Math.abs(event.clientX - from.x) > 24) {
    const to = place(from.music, event);
    const address = new URL(location.href);
    address.searchParams.set("from", Math.min(from.at, to));
    address.searchParams.set("to", Math.max(from.at, to));
    address.hash = "score";
    location.assign(address);
  }
  from = null;
});
document.addEventListener("dragstart", (event) => event.target.closest?.(".sheet-music") && event.preventDefault());

// ---- who needs you: title and icon are counted by the live part; a notification, where it is allowed

let needs = Number(document.body.dataset.needsYou || 0);
let told = needs;
let soon = 0;
function allow() {
  window.Notification?.requestPermission().then(() => offer());
}
function offer() {
  const button = $("#notify");
  if (button) button.hidden = !window.Notification || Notification.permission !== "default";
}
document.addEventListener("tenuto:fresh", (event) => {
  const now = event.detail.needs_you;
  if (typeof now !== "number") return;
  $("link[rel=icon]")?.setAttribute("href", `/static/icon-${Math.min(now, 10)}.svg`);
  const count = $(".count");
  if (count && now) count.firstChild.textContent = now;
  else if (count) count.remove();
  needs = now;
  clearTimeout(soon);
  soon = setTimeout(notify, 3000);
  moments();
});
// Once it has stood for a moment: a run that has just begun is driven by nobody until its engine is there.
function notify() {
  if (needs > told && document.hidden && window.Notification?.permission === "granted") {
    const note = new Notification("tenuto", { body: needs === 1 ? "A run waits for you." : `${needs} runs wait for you.`, tag: "tenuto", icon: "/static/icon-0.svg" });
    note.onclick = () => { focus(); location.assign("/"); };
  }
  told = needs;
}
document.addEventListener("tenuto:replaced", (event) => { moments(); follow(event.target); });
const follow = (from) => $$(".log[data-follow]", from).forEach((log) => (log.scrollTop = log.scrollHeight));

moments();
offer();
setInterval(moments, 30000);
follow(document);
