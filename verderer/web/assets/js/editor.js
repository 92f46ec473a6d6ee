// The pipeline editor: line numbers, problems at their lines, indenting by Tab, opening a file.
"use strict";

(() => {
  const area = document.getElementById("document");
  const gutter = document.querySelector("[data-gutter]");
  let wrong = new Set();
  let escaped = false;

  function number() {
    const lines = area.value.split("\n").length;
    const parts = [];
    for (let n = 1; n <= lines; n += 1) {
      if (wrong.has(n)) {
        const mark = document.createElement("b");
        mark.textContent = String(n);
        parts.push(mark, "\n");
      } else {
        parts.push(`${n}\n`);
      }
    }
    gutter.replaceChildren(...parts);
    gutter.scrollTop = area.scrollTop;
  }

  function marks() {
    const lines = document.getElementById("verdict")?.dataset.lines || "";
    wrong = new Set(lines.split(",").filter(Boolean).map(Number));
    number();
  }

  function changed() {
    area.dispatchEvent(new Event("input", { bubbles: true }));
  }

  function insert(text) {
    area.setRangeText(text, area.selectionStart, area.selectionEnd, "end");
    changed();
  }

  function indent(back) {
    const start = area.value.lastIndexOf("\n", area.selectionStart - 1) + 1;
    const end = area.selectionEnd;
    const block = area.value.slice(start, end);
    const moved = back ? block.replace(/^ {1,2}/gm, "") : block.replace(/^/gm, "  ");
    area.setRangeText(moved, start, end, "select");
    changed();
  }

  area.addEventListener("input", number);
  area.addEventListener("scroll", () => { gutter.scrollTop = area.scrollTop; }, { passive: true });
  area.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { escaped = true; return; }
    if (event.key === "Tab" && !escaped) {
      event.preventDefault();
      if (event.shiftKey || area.selectionStart !== area.selectionEnd) indent(event.shiftKey);
      else insert("  ");
    } else if (event.key === "Enter" && !event.ctrlKey && !event.metaKey && !event.isComposing) {
      const line = area.value.slice(area.value.lastIndexOf("\n", area.selectionStart - 1) + 1, area.selectionStart);
      const lead = line.match(/^ */)[0];
      event.preventDefault();
      insert(`\n${lead}${/:\s*$/.test(line) ? "  " : ""}`);
    } else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      document.querySelector("#new-run button.primary:not([disabled])")?.click();
    }
    escaped = false;
  });

  document.addEventListener("click", (event) => {
    const jump = event.target.closest("[data-line]");
    if (!jump) return;
    const lines = area.value.split("\n");
    const at = lines.slice(0, Number(jump.dataset.line) - 1).reduce((sum, line) => sum + line.length + 1, 0);
    area.focus();
    area.setSelectionRange(at + Math.max(0, Number(jump.dataset.column) - 1), at + (lines[Number(jump.dataset.line) - 1] || "").length);
    area.scrollTop = Math.max(0, (Number(jump.dataset.line) - 8) * 20);
  });

  // Values of parameters are judged with the document, when their field is left.
  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-check]")) changed();
    if (event.target.matches("[data-open-file]") && event.target.files[0]) {
      event.target.files[0].text().then((text) => { area.value = text; changed(); });
    }
  });
  document.addEventListener("htmx:afterSwap", marks);
  marks();
})();
