// The output viewer: only the lines in sight exist; they are fetched by number, a page at a time.
"use strict";

(() => {
  const ROWS = 200;
  const HEIGHT = 20;
  const KEPT = 30;
  const MOST_PIXELS = 15_000_000;  // browsers stop counting somewhere beyond

  const box = document.getElementById("logs");
  if (!box) return;
  const part = (name) => box.querySelector(`[data-log="${name}"]`);
  const view = part("view");
  const body = part("body");
  const language = document.documentElement.lang;
  const clock = new Intl.DateTimeFormat(language, { hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3, hour12: false });
  const number = new Intl.NumberFormat(language);

  let base = "";
  let over = true;
  let total = 0;
  let complete = false;
  let follow = true;
  let here = -1;
  let search = { text: null, hits: [], next: null };
  let turn = 0;  // answers of an earlier source are dropped
  const pages = new Map();  // page number -> { element, rows, full }
  const asked = new Set();

  function scale() {
    return Math.min(1, MOST_PIXELS / Math.max(1, total * HEIGHT));
  }

  function firstInSight() {
    return Math.floor(view.scrollTop / (HEIGHT * scale()));
  }

  function size(bytes) {
    const units = ["B", "KiB", "MiB", "GiB"];
    let at = 0;
    while (bytes >= 1024 && at < 3) { bytes /= 1024; at += 1; }
    return `${number.format(bytes >= 100 || !at ? Math.round(bytes) : Math.round(bytes * 10) / 10)} ${units[at]}`;
  }

  function span(name, text) {
    const made = document.createElement("span");
    made.className = name;
    made.textContent = text;
    return made;
  }

  function line([n, ms, markup, more, gap, lost]) {
    const made = document.createElement("div");
    made.className = "line";
    made.dataset.n = n;
    if (search.hits.includes(n)) made.classList.add("hit");
    if (n === here) made.classList.add("here");
    made.append(span("n", number.format(n + 1)), span("t", ms ? clock.format(ms) : ""));
    if (gap) made.append(span("gap", `⋯ ${lost ? size(lost) : ""} ${gap}`));
    const text = document.createElement("span");
    text.innerHTML = markup;  // escaped by the server, which adds colours alone
    made.append(text);
    if (more) made.append(span("more", `… + ${size(more)}`));
    return made;
  }

  function place(page, element) {
    // Beyond the scale lines overlap in pixels, so pages hang from what is in sight instead.
    const s = scale();
    const top = s === 1 ? page * ROWS * HEIGHT : view.scrollTop + (page * ROWS - firstInSight()) * HEIGHT;
    element.style.top = `${top}px`;
  }

  async function load(page, again = false) {
    const known = pages.get(page);
    if (asked.has(page) || (known && !again)) return;
    asked.add(page);
    const mine = turn;
    try {
      const answer = await fetch(`${base}?from=${page * ROWS}&count=${ROWS}`);
      if (!answer.ok || mine !== turn) return;
      const found = await answer.json();
      if (mine !== turn) return;
      told(found);
      const element = document.createElement("div");
      element.className = "logs-page";
      element.append(...found.rows.map(line));
      place(page, element);
      known?.element.remove();
      pages.delete(page);
      // In the order of their numbers, for those who hear the page.
      const after = [...pages].filter(([other]) => other > page).sort(([x], [y]) => x - y)[0];
      body.insertBefore(element, after?.[1].element ?? null);
      pages.set(page, { element, rows: found.rows.length });
      for (const [old, kept] of pages) {
        if (pages.size <= KEPT) break;
        kept.element.remove();
        pages.delete(old);
      }
    } finally {
      asked.delete(page);
    }
  }

  function told(found) {
    const grew = found.total !== total;
    total = found.total;
    complete = found.complete || over;
    body.style.height = `${Math.max(total * HEIGHT * scale(), 1)}px`;
    part("empty").hidden = total > 0;
    part("empty").textContent = complete ? part("empty").dataset.done : part("empty").dataset.open;
    const lines = part("lines").dataset;
    part("lines").textContent = (total === 1 ? lines.one : lines.many).replace("{n}", number.format(total));
    part("size").textContent = size(found.bytes);
    part("lost").textContent = found.lost ? part("lost").dataset.text.replace("{n}", number.format(found.lost)) : "";
    part("end").textContent = complete ? part("end").dataset.done : part("end").dataset.open;
    if (grew && follow) toEnd();
    if (complete && follow) setFollow(false);
  }

  function show() {
    if (!base) return;
    const first = Math.max(0, Math.floor(firstInSight() / ROWS));
    const last = Math.floor((firstInSight() + view.clientHeight / HEIGHT + 1) / ROWS);
    for (let page = first; page <= Math.max(first, last); page += 1) {
      if (page * ROWS < Math.max(total, 1)) load(page);
    }
    if (scale() !== 1) for (const [page, kept] of pages) place(page, kept.element);
  }

  // What is new is on the last page and after it.
  async function news() {
    if (!base || document.hidden) return;
    const page = Math.max(0, Math.floor((total - 1) / ROWS));
    await load(page, true);
    show();
  }

  function toEnd() {
    view.scrollTop = view.scrollHeight;
    show();
  }

  function toLine(n) {
    setFollow(false);
    here = n;
    view.scrollTop = Math.max(0, n * HEIGHT * scale() - view.clientHeight / 3);
    for (const old of body.querySelectorAll(".here")) old.classList.remove("here");
    body.querySelector(`[data-n="${n}"]`)?.classList.add("here");
    show();
  }

  function setFollow(on) {
    follow = on;
    part("follow").setAttribute("aria-pressed", String(on));
    if (on) toEnd();
  }

  async function find(text, from) {
    const answer = await fetch(`${base}/find?text=${encodeURIComponent(text)}&from=${from}`);
    return answer.ok ? answer.json() : { hits: [], next: null };
  }

  async function move(direction) {
    const text = part("find").value;
    if (!text) return;
    if (search.text !== text) {
      search = { text, ...(await find(text, 0)) };
      for (const row of body.querySelectorAll(".line")) row.classList.toggle("hit", search.hits.includes(Number(row.dataset.n)));
      here = direction > 0 ? firstInSight() - 1 : here;
    }
    let hit = direction > 0 ? search.hits.find((n) => n > here) : search.hits.findLast((n) => n < here);
    if (hit === undefined && direction > 0 && search.next !== null) {
      const further = await find(text, Math.max(search.next, here + 1));
      search.hits.push(...further.hits);
      search.next = further.next;
      hit = further.hits[0];
    }
    hit ??= direction > 0 ? search.hits[0] : search.hits.at(-1);
    count(hit);
    if (hit !== undefined) toLine(hit);
  }

  function count(hit) {
    const many = `${number.format(search.hits.length)}${search.next !== null ? "+" : ""}`;
    part("hits").textContent = hit === undefined ? words.noMatch : `${number.format(search.hits.indexOf(hit) + 1)} / ${many}`;
  }

  async function nextError() {
    let found = await find("", here + 1);
    if (!found.hits.length && here >= 0) found = await find("", 0);
    part("hits").textContent = found.hits.length ? "" : words.noMatch;
    if (found.hits.length) toLine(found.hits[0]);
  }

  function open() {
    const source = document.getElementById("log-source");
    const url = source?.dataset.url || "";
    part("name").textContent = source?.dataset.name || "";
    over = source?.dataset.over === "true";
    if (url === base) { if (url) news(); return; }
    turn += 1;
    base = url;
    total = 0;
    here = -1;
    search = { text: null, hits: [], next: null };
    pages.clear();
    asked.clear();
    body.replaceChildren();
    part("hits").textContent = "";
    part("empty").hidden = false;
    part("empty").textContent = words.loading;
    for (const name of ["lines", "size", "lost", "end"]) part(name).textContent = "";
    box.hidden = !base;
    if (!base) return;
    part("download").href = `${base}/download`;
    view.scrollTop = 0;
    setFollow(!over);
    const atEnd = source.dataset.end === "true";  // why it failed is said last
    load(0).then(() => { if (follow || atEnd) toEnd(); });
  }

  view.addEventListener("scroll", () => requestAnimationFrame(show), { passive: true });
  view.addEventListener("wheel", (event) => { if (event.deltaY < 0 && follow) setFollow(false); }, { passive: true });
  view.addEventListener("keydown", (event) => {
    if (event.key === "End") { setFollow(!over); toEnd(); event.preventDefault(); }
    if (event.key === "Home") { setFollow(false); view.scrollTop = 0; event.preventDefault(); }
    if (["PageUp", "ArrowUp"].includes(event.key)) setFollow(false);
  });
  part("follow").addEventListener("click", () => setFollow(!follow));
  part("times").addEventListener("click", (event) => {
    const hidden = view.classList.toggle("no-times");
    event.currentTarget.setAttribute("aria-pressed", String(!hidden));
  });
  part("next").addEventListener("click", () => move(1));
  part("previous").addEventListener("click", () => move(-1));
  part("error").addEventListener("click", nextError);
  part("find").addEventListener("keydown", (event) => {
    if (event.key === "Enter") { event.preventDefault(); move(event.shiftKey ? -1 : 1); }
  });
  document.addEventListener("log:news", news);
  document.addEventListener("htmx:afterSwap", (event) => { if (event.detail.target.id === "live") open(); });
  setInterval(() => { if (follow && !complete) news(); }, 1000);
  open();
})();
