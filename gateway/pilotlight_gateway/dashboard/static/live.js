// Keeps a page as it is now. What changes comes as plain values: texts become text, never markup.
const topic = document.body.dataset.topic;
const status = document.getElementById("live");

let isRefused = false, isSilent = false; // the stream, by the dashboard; the gateways
function say(live, refused) {
  isRefused = !live && Boolean(refused);
  if (live) status.textContent = "Live: this page changes by itself.";
  else if (!refused) status.textContent = "Not live: the dashboard does not answer. It goes on by itself.";
  if (refused) redraw([]); // which says why: no gateway answers, there are too many, or its session has ended
}

function sayWhy(silent) {
  if (silent) status.textContent = "Not live: no gateway answers. It goes on by itself.";
  else if (isRefused) status.textContent = "Not live: there are as many live pages as there may be. Close some windows; it goes on by itself.";
  else if (isSilent) say(true);
  isSilent = silent;
}

function setText(id, text, tone) {
  const element = document.getElementById(id);
  if (!element) return;
  if (element.textContent !== text) element.textContent = text;
  if (element.className !== tone) element.className = tone;
}

// A bar beside its text, as the server makes it.
function fillBar(cell, text, part, scale) {
  if (cell.firstElementChild?.className !== `bar ${scale}`) {
    const frame = document.createElement("span"), bar = document.createElement("progress");
    frame.className = `bar ${scale}`;
    frame.setAttribute("aria-hidden", "true");
    frame.append(bar);
    cell.replaceChildren(frame, document.createElement("span"));
  }
  const [frame, words] = cell.children;
  frame.firstElementChild.value = part;
  if (words.textContent !== text) words.textContent = text;
}

function fill(cell, text, tone, href, numeric, part, scale) {
  const classes = [numeric ? "number" : "", tone].filter(Boolean).join(" ");
  if (cell.className !== classes) cell.className = classes;
  if (scale) { fillBar(cell, text, part, scale); return; }
  const link = cell.firstElementChild;
  if (href && link?.tagName === "A" && link.getAttribute("href") === href) {
    if (link.textContent !== text) link.textContent = text;
  } else if (href) {
    const anchor = document.createElement("a");
    anchor.setAttribute("href", href); // an address of this dashboard: the server makes them
    anchor.textContent = text;
    cell.replaceChildren(anchor);
  } else if (cell.textContent !== text || link) cell.textContent = text;
}

function setRows(id, rows) {
  const table = document.getElementById(id);
  if (!table) return;
  const body = table.tBodies[0], numeric = table.dataset.numeric ?? "";
  const old = new Map([...body.rows].map((row) => [row.dataset.key, row]));
  const made = rows.map(([key, cells]) => {
    const row = old.get(key) ?? document.createElement("tr");
    row.dataset.key = key;
    cells.forEach(([text, tone, href, part, scale], place) => {
      let cell = row.cells[place];
      if (!cell) {
        cell = document.createElement(place ? "td" : "th");
        if (!place) cell.scope = "row";
        row.append(cell);
      }
      fill(cell, text, tone, href, numeric[place] === "1", part, scale);
    });
    while (row.cells.length > cells.length) row.lastElementChild.remove();
    return row;
  });
  if (made.length !== body.rows.length || made.some((row, place) => row !== body.rows[place])) body.replaceChildren(...made);
  document.getElementById(`${id}-empty`)?.toggleAttribute("hidden", rows.length > 0);
}

function setCells(id, cells) {
  const table = document.getElementById(id);
  if (!table) return;
  const rows = table.tBodies[0].rows, numeric = table.dataset.numeric ?? "";
  for (const [row, place, text, tone, href, part, scale] of cells) {
    const cell = rows[row]?.cells[place];
    if (cell) fill(cell, text, tone, href, numeric[place] === "1", part, scale);
  }
}

function setMarks(marks) {
  for (const [id, mark] of marks) {
    const element = document.getElementById(id);
    if (element && element.getAttribute("class") !== mark) element.setAttribute("class", mark);
  }
}

function setLines(id, lines) {
  const box = document.getElementById(id);
  if (!box) return;
  const shown = box.children;
  if (shown.length === lines.length && lines.every((line, place) => shown[place].textContent === line)) return;
  const atEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 30;
  box.replaceChildren(...lines.map((line) => Object.assign(document.createElement("span"), { textContent: line })));
  if (atEnd) box.scrollTop = box.scrollHeight;
}

// What has another shape is taken from the page as the server makes it: a document, which no policy of scripts runs.
let fetching = false, again = false, wanted = new Set();
function redraw(ids) {
  ids.forEach((id) => wanted.add(id));
  if (fetching) { again = true; return; }
  fetching = true;
  const request = new XMLHttpRequest();
  request.open("GET", topic);
  request.responseType = "document";
  request.timeout = 15000;
  request.onloadend = () => {
    const page = request.responseXML, asked = wanted;
    fetching = false;
    wanted = new Set();
    const isMine = page?.body?.dataset.topic === topic;
    if (!isMine && page && request.status < 500) { location.reload(); return; } // logged out, or another page
    sayWhy(request.status >= 500);
    if (!isMine) { // nobody answers: what is shown stays, and what has changed of it is fetched later
      asked.forEach((id) => wanted.add(id));
      if (asked.size) setTimeout(() => redraw([]), 3000);
      again = false;
      return;
    }
    for (const id of asked) {
      const mine = id ? document.getElementById(id) : document.getElementById("main");
      const theirs = page && (id ? page.getElementById(id) : page.getElementById("main"));
      if (mine && theirs) mine.replaceWith(document.adoptNode(theirs));
    }
    dispatchEvent(new CustomEvent("redrawn"));
    if (again) { again = false; redraw([]); }
  };
  request.send();
}

function apply(changes) {
  if (changes.whole) { redraw([""]); return; }
  for (const [id, text, tone] of changes.text ?? []) setText(id, text, tone);
  for (const [id, rows] of Object.entries(changes.rows ?? {})) setRows(id, rows);
  for (const [id, cells] of Object.entries(changes.cells ?? {})) setCells(id, cells);
  for (const [id, lines] of Object.entries(changes.lines ?? {})) setLines(id, lines);
  setMarks(changes.marks ?? []);
  const other = (changes.shapes ?? []).filter(([id, shape]) => document.getElementById(id)?.dataset.shape !== shape);
  const all = [...(changes.redraw ?? []), ...other.map(([id]) => id)];
  if (all.length) redraw(all);
  if (changes.points) dispatchEvent(new CustomEvent("points", { detail: changes.points }));
}

for (const box of document.querySelectorAll("pre.lines")) box.scrollTop = box.scrollHeight; // the newest is the last

function heard(message) {
  if ("live" in message) say(message.live, message.refused);
  else if (message.topic === topic) {
    const begun = performance.now();
    apply(message.changes);
    performance.measure("update", { start: begun });
  }
}

if (typeof SharedWorker === "function") {
  // The address of a worker has to be trusted: this policy, of which there may be no second, trusts that one alone.
  const own = `${document.body.dataset.assets}/stream.js`;
  const trust = { createScriptURL: (url) => { if (url !== own) throw new TypeError("not the stream"); return url; } };
  const address = globalThis.trustedTypes?.createPolicy("pilotlight", trust).createScriptURL(own) ?? own;
  const worker = new SharedWorker(address, { name: "pilotlight" });
  worker.port.onmessage = ({ data }) => heard(data);
  const join = () => worker.port.postMessage({ topic });
  addEventListener("pagehide", () => worker.port.postMessage({}));
  addEventListener("pageshow", (event) => { if (event.persisted) join(); });
  join();
} else {
  // Without shared workers a tab has a stream of its own while it is looked at.
  let source, retry;
  const look = () => {
    source?.close();
    source = undefined;
    clearTimeout(retry);
    if (document.hidden) return;
    source = new EventSource(`/ui/events?page=${encodeURIComponent(topic)}`);
    source.addEventListener("open", () => say(true));
    source.addEventListener("error", () => {
      const refused = source?.readyState === EventSource.CLOSED;
      say(false, refused);
      if (refused) retry = setTimeout(look, 5000);
    });
    source.addEventListener("page", (event) => heard(JSON.parse(event.data)));
  };
  document.addEventListener("visibilitychange", look);
  look();
}
