// Live pages: one tab listens for all tabs of this browser, and each page asks for the sections that changed.
//
// A stream holds one of the six connections that a browser opens to a host, so the tab that holds the lock listens and
// tells the others. When it is closed, another gets the lock. A section in which somebody types stays as it is, and so
// does a log in which somebody has scrolled up. Only what is new in a section lights up.

const policy = window.trustedTypes
  ? window.trustedTypes.createPolicy("tenuto", { createHTML: (html) => html })
  : { createHTML: (html) => html };

const channel = new BroadcastChannel("tenuto-live");
const run = document.body.dataset.run || "";
const AGAIN = [500, 1000, 2000, 5000];
let asking = false;
let askAgain = false;
let failures = 0;

const sections = () => [...document.querySelectorAll("main > section[id]")];
const have = () => sections().map((one) => `${one.id}:${one.dataset.digest}`).join(",");

function say(state, words) {
  document.documentElement.dataset.live = state;
  const place = document.querySelector("#live > span");
  if (place) place.textContent = words;
}

function holdsFocus(section) {
  const active = document.activeElement;
  const typing = active && active !== document.body && section.contains(active) && active.matches("input, textarea, select");
  const typed = [...section.querySelectorAll("textarea, input[type=text], input:not([type])")].some(
    (field) => field.value !== field.defaultValue,
  );
  return typing || typed;
}

function replace(part) {
  let section = document.getElementById(part.name);
  if (!section) {
    section = document.createElement("section");
    section.id = part.name;
    document.querySelector("main").append(section);
  }
  if (holdsFocus(section)) {
    section.dataset.stale = "1";
    section.querySelectorAll("button[type=submit]").forEach((button) => button.setAttribute("data-stale", "1"));
    lock(section, part);
    return;
  }
  if (isRead(section)) return;
  const known = new Set(pieces(section).map(words));
  const open = new Set([...section.querySelectorAll("details[open] > summary")].map((one) => one.textContent));
  const inside = document.activeElement && section.contains(document.activeElement) ? document.activeElement.id : "";
  section.innerHTML = policy.createHTML(part.html);
  section.dataset.digest = part.digest;
  delete section.dataset.stale;
  section.querySelectorAll("details > summary").forEach((one) => open.has(one.textContent) && (one.parentElement.open = true));
  if (inside) document.getElementById(inside)?.focus();
  pieces(section).forEach((one) => known.size && !known.has(words(one)) && one.classList.add("fresh"));
  section.dispatchEvent(new CustomEvent("tenuto:replaced", { bubbles: true }));
}

// The rows and cards of a section, and what each says whenever it is asked: without how long ago something was.
const pieces = (section) => [...section.querySelectorAll("li:not(.numbered li):not(.diff li), tbody tr, .badge, .band")];
function words(piece) {
  let text = piece.textContent;
  piece.querySelectorAll("time").forEach((one) => (text = text.replace(one.textContent, "")));
  return text.replace(/\b[\d.]+(ms|s|m|h|d)\b/g, "");
}

// Somebody has scrolled up in a log that follows: it waits until they are at its end again.
const end = (log) => log.scrollHeight - log.scrollTop - log.clientHeight < 40;
const isRead = (section) => [...section.querySelectorAll(".log[data-follow]")].some((log) => !end(log));
document.addEventListener("scroll", (event) => event.target.matches?.(".log[data-follow]") && end(event.target) && refresh(), true);

// What a person has written stays; the buttons do not: they were for what the page showed before.
function lock(section, part) {
  const now = document.createElement("template");
  now.innerHTML = policy.createHTML(part.html);
  const gate = (root) => root.querySelector("input[name=gate]")?.value || "";
  const shown = (root) => [...root.querySelectorAll("input[name=shown]")].map((one) => one.value).join("\n");
  const open = (root) => [...root.querySelectorAll("button[name=answer]:not([disabled])")].map((one) => one.value).join();
  if (gate(section) === gate(now.content) && shown(section) === shown(now.content) && open(section) === open(now.content)) return;
  section.querySelectorAll("button[name=answer]").forEach((button) => (button.disabled = true));
  if (section.querySelector(".outdated")) return;
  const words = document.createElement("p");
  words.className = "outdated";
  words.setAttribute("role", "alert");
  words.textContent = "This was decided elsewhere, or what it shows has changed. Your words are still here; open the page again to decide.";
  section.prepend(words);
}

async function refresh() {
  if (asking) {
    askAgain = true;
    return;
  }
  asking = true;
  try {
    const address = new URL(location.href);
    address.hash = "";
    address.searchParams.set("parts", "");
    address.searchParams.set("have", have());
    const answer = await fetch(address, { headers: { Accept: "application/json" } });
    if (answer.status === 401) return entered();
    if (!answer.ok || !(answer.headers.get("content-type") || "").includes("json")) return;
    const told = await answer.json();
    told.sections.forEach(replace);
    const names = new Set(told.names);
    sections().forEach((one) => {
      if (!names.has(one.id) && !holdsFocus(one)) one.remove();
      else if (!names.has(one.id)) lock(one, { html: "" });
    });
    document.title = `${told.needs_you ? `(${told.needs_you}) ` : ""}${told.title} · tenuto`;
    document.dispatchEvent(new CustomEvent("tenuto:fresh", { detail: told }));
  } catch {
    // The server is gone for a moment: the stream says when it is back.
  } finally {
    asking = false;
    if (askAgain) {
      askAgain = false;
      refresh();
    }
  }
}

function entered() {
  say("out", "started anew: enter the new code");
  if (document.querySelector(".enter-again")) return;
  const line = document.createElement("p");
  line.className = "enter-again";
  line.setAttribute("role", "alert");
  const link = document.createElement("a");
  link.href = "/in";
  link.textContent = "The server was started anew: enter the new code";
  line.append(link);
  document.querySelector("main")?.prepend(line);
}

function hear(told) {
  if (told.state) return told.state === "out" ? entered() : say(told.state, told.words);
  if (!told.run || !run || told.run === run) refresh();
}

function tell(told) {
  channel.postMessage(told);
  hear(told);
}

// EventSource gives up for good after a 401 or 403, and says nothing about it: fetch says which it was.
function listen() {
  return new Promise((gone) => {
    const source = new EventSource("/live");
    source.onopen = () => {
      failures = 0;
      tell({ state: "on", words: "live" });
      tell({ run: "" });
    };
    source.onmessage = (event) => tell(JSON.parse(event.data));
    source.onerror = async () => {
      source.close();
      tell({ state: "off", words: "not connected" });
      try {
        const answer = await fetch("/live", { method: "HEAD" });
        if (answer.status === 401) tell({ state: "out" });
      } catch {
        // still gone
      }
      const wait = AGAIN[Math.min(failures, AGAIN.length - 1)];
      failures += 1;
      setTimeout(gone, wait);
    };
    addEventListener("pagehide", () => source.close(), { once: true });
  });
}

async function lead() {
  for (;;) await listen();
}

export function start() {
  channel.onmessage = (event) => hear(event.data);
  document.addEventListener("tenuto:look", refresh);
  if (!document.body.dataset.live) return;
  if (navigator.locks) navigator.locks.request("tenuto-live", lead);
  else lead();
  addEventListener("pageshow", (event) => event.persisted && refresh());
  document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && refresh());
}

// The code of the link stands behind the #, which no server is sent: it is put into the form, and out of the address.
export function enter() {
  const field = document.getElementById("code");
  const code = location.hash.slice(1);
  if (!field || !code) return;
  history.replaceState(null, "", location.pathname);
  field.value = code;
  field.form.requestSubmit();
}
