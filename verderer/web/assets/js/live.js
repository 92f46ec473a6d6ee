// Keeps the live part of a page true: the server says when to look, htmx fetches the part.
"use strict";

(() => {
  let source = null;
  let url = "";
  let from = "";  // a page that can be shown only once is followed at another address
  let pending = false;
  let busy = false;
  let lost = 0;
  const scrolls = new Map();

  const live = () => document.getElementById("live");

  // Somebody who marks text, or has a menu open in the part, is not disturbed.
  function disturbed() {
    const part = live();
    const selection = getSelection();
    if (!part || document.hidden) return true;
    if (selection && !selection.isCollapsed && part.contains(selection.anchorNode)) return true;
    return Boolean(part.querySelector("details[open]")) || Boolean(document.querySelector("dialog[open]"));
  }

  async function refresh() {
    if (busy || disturbed()) { pending = true; return; }
    pending = false;
    busy = true;
    try {
      await htmx.ajax("GET", from || location.pathname + location.search, { target: "#live", swap: "outerHTML show:none" });
    } finally {
      busy = false;
    }
  }

  function connect() {
    const wanted = live()?.dataset.live || "";
    from = live()?.dataset.from || from;
    if (wanted === url && source && source.readyState !== EventSource.CLOSED) return;
    source?.close();
    source = null;
    url = wanted;
    if (!url) return;
    source = new EventSource(url);
    source.addEventListener("hello", () => { if (lost) refresh(); lost = 0; notice(false); });
    source.addEventListener("changed", refresh);
    source.addEventListener("log", () => document.dispatchEvent(new CustomEvent("log:news")));
    source.addEventListener("error", () => { lost += 1; if (lost > 1) notice(true); });
  }

  function notice(shown) {
    let note = document.getElementById("lost");
    if (!shown) { note?.remove(); return; }
    if (note) return;
    note = document.createElement("div");
    note.id = "lost";
    note.className = "lost note tone-warn";
    note.setAttribute("role", "status");
    note.textContent = JSON.parse(document.getElementById("words").textContent).lost;
    document.body.append(note);
  }

  // What was scrolled stays where it was, and what had the focus keeps it.
  let focused = "";
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (event.detail.target.id !== "live") return;
    if (event.detail.xhr.status >= 500) { event.detail.shouldSwap = false; return; }
    for (const box of document.querySelectorAll("[data-keep-scroll]")) scrolls.set(box.id, [box.scrollLeft, box.scrollTop]);
    const active = document.activeElement;
    focused = active && live()?.contains(active) ? active.getAttribute("href") || "" : "";
  });
  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.target.id !== "live") return;
    for (const box of document.querySelectorAll("[data-keep-scroll]")) {
      const [left, top] = scrolls.get(box.id) || [0, 0];
      box.scrollTo(left, top);
    }
    if (focused) [...live().querySelectorAll("a[href]")].find((a) => a.getAttribute("href") === focused)?.focus({ preventScroll: true });
    connect();
  });

  document.addEventListener("visibilitychange", () => { if (!document.hidden && pending) refresh(); });
  setInterval(() => { if (pending) refresh(); }, 1000);

  // The selected step is brought into sight once.
  document.querySelector('#graph [aria-current="true"]')?.scrollIntoView({ block: "nearest", inline: "nearest" });
  scrollTo(0, 0);
  connect();
  addEventListener("pagehide", () => source?.close());
  addEventListener("pageshow", (event) => { if (event.persisted) { url = ""; connect(); refresh(); } });
})();
