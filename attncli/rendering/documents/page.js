"use strict";
// A cell that is clicked, or reached with the arrow keys, shows its arithmetic and lights up what it was made from.
const data = JSON.parse(document.getElementById("work").textContent);
const panel = document.getElementById("panel");
const cells = (names) => names.map((name) => document.getElementById(name)).filter(Boolean);
const usedIn = {};
for (const [name, { from }] of Object.entries(data)) {
  for (const source of from) (usedIn[source] ||= []).push(name);
}

function element(tag, text) {
  const made = document.createElement(tag);
  made.textContent = text;
  return made;
}

function clear() {
  for (const cell of document.querySelectorAll("td.picked, td.from, td.into")) {
    cell.classList.remove("picked", "from", "into");
    cell.removeAttribute("aria-selected");
  }
}

function list(className, title, names) {
  const there = names.filter((name) => document.getElementById(name));
  if (!there.length) return [];
  const part = document.createElement("div");
  part.className = className;
  const items = document.createElement("ul");
  for (const name of there) {
    const button = element("button", name);
    button.type = "button";
    button.addEventListener("click", () => document.getElementById(name).focus());
    const item = document.createElement("li");
    item.append(button);
    items.append(item);
  }
  part.append(element("h3", title), items);
  return [part];
}

function show(cell) {
  clear();
  const { lines, from } = data[cell.id] || { lines: [`${cell.id} = ${cell.textContent}`], from: [] };
  const uses = usedIn[cell.id] || [];
  cell.classList.add("picked");
  cell.setAttribute("aria-selected", "true");
  for (const one of cells(uses)) one.classList.add("into");
  for (const one of cells(from)) one.classList.add("from");
  const close = element("button", "Close");
  close.type = "button";
  close.id = "close";
  close.addEventListener("click", reset);
  const work = document.createElement("div");
  work.className = "work";
  work.append(...lines.map((line) => element("p", line)));
  panel.replaceChildren(close, element("h2", cell.id), work,
    ...list("made", "Made from", from), ...list("used", "Used in", uses));
  panel.classList.remove("empty");
  document.body.classList.add("open");
}

const atFirst = Array.from(panel.childNodes);
function reset() {
  clear();
  panel.replaceChildren(...atFirst);
  panel.classList.add("empty");
  document.body.classList.remove("open");
}

function step(cell, key, far) {
  const rows = cell.closest("table").tBodies[0].rows;
  const inRow = (row) => Array.from(row.cells).filter((one) => one.id);
  const row = cell.parentElement;
  const across = inRow(row);
  const at = across.indexOf(cell);
  const down = Array.from(rows).filter((one) => inRow(one).length);
  const line = (row_) => inRow(row_)[at];
  const places = {
    ArrowLeft: across[at - 1], ArrowRight: across[at + 1],
    ArrowUp: down[down.indexOf(row) - 1] && line(down[down.indexOf(row) - 1]),
    ArrowDown: down[down.indexOf(row) + 1] && line(down[down.indexOf(row) + 1]),
    Home: far ? inRow(down[0])[0] : across[0],
    End: far ? inRow(down.at(-1)).at(-1) : across.at(-1),
  };
  return places[key];
}

for (const table of document.querySelectorAll("table")) {
  table.setAttribute("role", "grid");
  const all = Array.from(table.querySelectorAll("td[id]"));
  all.forEach((cell, i) => { cell.tabIndex = i ? -1 : 0; });
  table.addEventListener("focusin", ({ target }) => {
    if (!target.id) return;
    for (const cell of all) cell.tabIndex = cell === target ? 0 : -1;
    show(target);
  });
  table.addEventListener("keydown", (event) => {
    if (!event.target.id || event.altKey || event.metaKey) return;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      show(event.target);
      return;
    }
    const next = step(event.target, event.key, event.ctrlKey);
    if (next) {
      event.preventDefault();
      next.focus();
    }
  });
}
document.addEventListener("keydown", (event) => { if (event.key === "Escape") reset(); });
