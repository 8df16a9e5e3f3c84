// Draws the tables of values over time, by uPlot, in the page's colours; the table stays beside the chart.
const plots = new Map();

function read(table) {
  const names = [...table.tHead.rows[0].cells].slice(1).map((cell) => cell.textContent);
  const rows = [...table.tBodies[0].rows];
  const at = rows.map((row) => Number(row.cells[0].dataset.at));
  const values = names.map((_, place) => rows.map((row) => {
    const text = row.cells[place + 1].textContent;
    return text === "" ? null : Number(text);
  }));
  return { names, data: [at, ...values] };
}

function draw() {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  for (const place of document.querySelectorAll("[data-chart]")) {
    const table = document.getElementById(place.dataset.chart);
    if (!table || typeof uPlot === "undefined") continue;
    plots.get(place)?.destroy();
    const { names, data } = read(table);
    const axis = { stroke: colour("--ink"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 } };
    const clock = (at) => (at === null ? "" : new Date(at * 1000).toISOString().slice(11, 16)); // UTC, as the table has it
    const series = names.map((label, number) => ({ label, stroke: colour(`--c${number % 8}`), width: 2, spanGaps: false }));
    const options = { width: Math.min(900, place.clientWidth || 900), height: 180, series: [{ label: "UTC", value: (_, at) => clock(at) }, ...series], axes: [{ ...axis, values: (_, ticks) => ticks.map(clock) }, { ...axis, label: place.dataset.unit }], scales: { y: { range: (_, low, high) => [Math.min(0, low ?? 0), high > 0 ? high * 1.1 : 1] } } };
    plots.set(place, new uPlot(options, data, place));
  }
}

addEventListener("points", ({ detail }) => {
  for (const [id, [first, points]] of Object.entries(detail)) {
    const body = document.getElementById(`${id}-table`)?.tBodies[0];
    if (!body) continue;
    while (body.rows.length && Number(body.rows[0].cells[0].dataset.at) < first) body.rows[0].remove();
    for (const [at, ...values] of points) {
      let row = [...body.rows].find((one) => Number(one.cells[0].dataset.at) === at);
      if (!row) {
        row = body.insertRow();
        const name = document.createElement("th");
        name.scope = "row";
        name.dataset.at = at;
        name.textContent = new Date(at * 1000).toISOString().slice(11, 19);
        row.append(name);
      }
      values.forEach((value, place) => {
        const cell = row.cells[place + 1] ?? row.insertCell();
        cell.className = "number";
        cell.textContent = value === null ? "" : String(Number(value.toPrecision(4)));
      });
    }
  }
  draw();
});
addEventListener("redrawn", draw);
addEventListener("resize", draw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
draw();
