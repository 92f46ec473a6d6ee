// What every page does: true times, keyboard, menus, copying, questions before what cannot be undone.
"use strict";

const words = JSON.parse(document.getElementById("words").textContent);
const html = document.documentElement;

function fill(text, n) {
  return text.replace("%(n)s", String(n));
}

// ---- times: relative ones stay true, absolute ones are in the reader's own zone

const whole = new Intl.DateTimeFormat(html.lang, { dateStyle: "medium", timeStyle: "medium" });
const day = new Intl.DateTimeFormat(html.lang, { dateStyle: "medium", timeStyle: "short" });

function ago(ms) {
  const s = Math.max(0, (Date.now() - ms) / 1000);
  if (s < 5) return words.ago.now;
  if (s < 60) return fill(words.ago.s, Math.floor(s));
  if (s < 3600) return fill(words.ago.min, Math.floor(s / 60));
  if (s < 48 * 3600) return fill(words.ago.h, Math.floor(s / 3600));
  if (s < 30 * 86400) return fill(words.ago.d, Math.floor(s / 86400));
  return null;
}

function lasted(ms) {
  const s = Math.max(0, (Date.now() - ms) / 1000);
  if (s < 60) return fill(words.span.s, Math.floor(s));
  const pairs = [["min", "s", 60, 1, 3600], ["h", "min", 3600, 60, 86400], ["d", "h", 86400, 3600, Infinity]];
  for (const [big, small, size, part, end] of pairs) {
    if (s >= end) continue;
    const rest = Math.floor((s % size) / part);
    const head = fill(words.span[big], Math.floor(s / size));
    return rest ? `${head} ${fill(words.span[small], rest)}` : head;
  }
  return "";
}

function tick(root) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const at = Date.parse(time.dateTime);
    if (Number.isNaN(at)) continue;
    const title = whole.format(at);
    if (time.title !== title) time.title = title;
    const text = "ago" in time.dataset ? ago(at) : "since" in time.dataset ? lasted(at) : "at" in time.dataset ? day.format(at) : null;
    if (text !== null && time.textContent !== text) time.textContent = text;
  }
}
tick(document);
setInterval(() => { if (!document.hidden) tick(document); }, 1000);
document.addEventListener("htmx:afterSwap", () => tick(document));

// ---- every request of htmx carries the form token of the page

document.addEventListener("htmx:configRequest", (event) => {
  event.detail.headers["x-form-token"] = document.querySelector('meta[name="form-token"]').content;
});

// ---- keyboard

const jumps = { o: "/", r: "/runs", c: "/clusters", p: "/projects", v: "/governance", s: "/settings" };
let jumping = 0;

function typing(target) {
  return target.closest("input, textarea, select, [contenteditable], dialog[open]");
}

function step(direction) {
  const lines = [...document.querySelectorAll("#content a.whole")];
  if (!lines.length) return;
  const at = lines.indexOf(document.activeElement);
  const next = lines[Math.min(Math.max(at + direction, 0), lines.length - 1)];
  next.focus();
  next.scrollIntoView({ block: "nearest" });
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    for (const menu of document.querySelectorAll("details.menu[open]")) menu.open = false;
    closeSide();
  }
  if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
  if (jumping && Date.now() - jumping < 1500 && event.key in jumps) {
    location.assign(jumps[event.key]);
    event.preventDefault();
  } else if (event.key === "/") {
    (document.querySelector("[data-search]") || document.getElementById("search"))?.focus();
    event.preventDefault();
  } else if (event.key === "?") {
    document.getElementById("help")?.showModal();
    event.preventDefault();
  } else if (event.key === "n") {
    location.assign("/runs/new");
  } else if (event.key === "j" || event.key === "k") {
    step(event.key === "j" ? 1 : -1);
  }
  jumping = event.key === "g" ? Date.now() : 0;
});

// ---- menus, the side on a phone, help, copying, notices

function closeSide() {
  document.getElementById("side")?.classList.remove("open");
  document.querySelector("[data-burger]")?.setAttribute("aria-expanded", "false");
}

async function copy(button, text) {
  await navigator.clipboard.writeText(text);
  const before = button.title;
  button.title = words.copied;
  button.classList.add("copied");
  const said = document.createElement("span");
  said.className = "sr";
  said.setAttribute("role", "status");
  said.textContent = words.copied;
  button.append(said);
  setTimeout(() => { button.title = before; button.classList.remove("copied"); said.remove(); }, 1600);
}

document.addEventListener("click", (event) => {
  const target = event.target;
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(target)) menu.open = false;
  }
  if (target.closest("[data-help]")) document.getElementById("help").showModal();
  if (target.closest("[data-dismiss]")) document.getElementById("notice").replaceChildren();
  const burger = target.closest("[data-burger]");
  if (burger) {
    const open = document.getElementById("side").classList.toggle("open");
    burger.setAttribute("aria-expanded", String(open));
  } else if (!target.closest("#side")) {
    closeSide();
  }
  const copying = target.closest("[data-copy]");
  if (copying) copy(copying, copying.dataset.copy);
  const from = target.closest("[data-copy-from]");
  if (from) copy(from, [...document.querySelectorAll(`${from.dataset.copyFrom} > span`)].map((s) => s.textContent).join("\n"));
});

// ---- questions

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!form.dataset.confirm || form.dataset.sure) return;
  event.preventDefault();
  const dialog = document.getElementById("confirm");
  document.getElementById("confirm-title").textContent = form.dataset.confirm;
  document.getElementById("confirm-text").textContent = form.dataset.text || "";
  document.getElementById("confirm-yes").textContent = form.dataset.yes;
  dialog.returnValue = "";
  dialog.addEventListener("close", () => {
    if (dialog.returnValue !== "yes") return;
    form.dataset.sure = "1";
    form.requestSubmit();
  }, { once: true });
  dialog.showModal();
});

// ---- the choice of columns is one parameter

for (const form of document.querySelectorAll("form[data-columns]")) {
  form.addEventListener("change", () => {
    const chosen = [...form.querySelectorAll("input[type=checkbox]:checked")].map((box) => box.value);
    form.elements.columns.value = chosen.join(",");
  });
}
