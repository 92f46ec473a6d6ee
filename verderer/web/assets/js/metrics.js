// Draws the curves that steps reported, and draws them again when there is more.
"use strict";

(() => {
  const tones = ["--run", "--good", "--unsure", "--stop", "--bad", "--start", "--warn", "--off"];
  const dashes = [[], [6, 3], [2, 3]];
  let plots = [];
  let data = null;

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  function draw() {
    for (const plot of plots) plot.destroy();
    plots = [];
    for (const box of document.querySelectorAll("[data-metric]")) {
      const chart = data?.[box.dataset.metric];
      if (!chart) continue;
      const axis = { stroke: colour("--text-soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "11px system-ui" };
      const series = chart.names.map((name, n) => ({
        label: name,
        stroke: colour(tones[n % tones.length]),
        width: 1.5,
        dash: dashes[Math.floor(n / tones.length) % dashes.length],
        spanGaps: true,
        points: { show: chart.x.length < 3 },
      }));
      const legend = chart.names.length <= 6;
      plots.push(new uPlot({
        width: box.clientWidth,
        height: 220 - (legend ? 24 : 0),
        legend: { show: legend },
        scales: { x: { time: false } },
        cursor: { points: { size: 6 }, sync: { key: "run" } },
        axes: [{ ...axis, size: 32 }, { ...axis, size: 56 }],
        series: [{ label: document.querySelector("[data-curves]").dataset.x }, ...series],
      }, [chart.x, ...chart.lines], box));
    }
  }

  async function load() {
    const charts = document.querySelector("[data-curves]");
    if (!charts) return;
    const answer = await fetch(charts.dataset.curves);
    if (!answer.ok) return;
    data = await answer.json();
    draw();
  }

  let resizing = 0;
  addEventListener("resize", () => { clearTimeout(resizing); resizing = setTimeout(draw, 120); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  document.addEventListener("htmx:afterSwap", (event) => { if (event.detail.target.id === "live") load(); });
  load();
})();
