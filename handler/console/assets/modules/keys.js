// Keys without Ctrl: for rows, the filter, what the page offers, and the sections. They can be switched off, do nothing in fields, and leave
// alone what the browser has for Ctrl, Alt and Meta.
import { choice, say } from "./base.js";

const rows = () => [...document.querySelectorAll("main tbody tr")];
const current = () => document.activeElement?.closest("main tbody tr") ?? null;
const linkOf = (row) => row?.querySelector("a[href]") ?? null;

// step goes some rows on: to the link of the row, or to the row itself where it has none.
const step = (by) => {
  const all = rows();
  const at = all.indexOf(current());
  const row = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, at + by))];
  if (!row) {
    return;
  }
  const stop = linkOf(row) ?? row;
  if (stop === row) {
    row.tabIndex = -1;
  }
  stop.focus({ focusVisible: true });
  row.scrollIntoView({ block: "nearest" });
};

const filter = () => {
  const form = document.querySelector('main form[method="get"]');
  const details = form?.closest("details");
  if (details) {
    details.open = true;
  }
  (form?.querySelector("input:not([type=hidden], [type=checkbox])") ?? form?.querySelector("select"))?.focus();
};

const actions = {
  j: () => step(1),
  k: () => step(-1),
  o: () => linkOf(current())?.click(),
  x: () => current()?.querySelector('input[type="checkbox"][name="row"]')?.click(),
  "/": filter,
  "?": () => document.getElementById("help").showModal(),
};

// offered does what the page marks with a key; with a row that has the focus, what that marks.
const offered = (key) => {
  const marked = `[data-key="${CSS.escape(key)}"]`;
  const target = current()?.querySelector(marked) ?? document.querySelector(`main ${marked}`);
  if (target?.disabled) {
    say(document.getElementById(target.getAttribute("aria-describedby"))?.textContent ?? "");
  } else {
    target?.click();
  }
};

export const keys = () => {
  let on = true, going = 0;
  choice("keys", "on", (value) => { on = value === "on"; });
  document.addEventListener("keydown", (event) => {
    if (!on || event.defaultPrevented || event.isComposing || event.repeat && !"jk".includes(event.key)
      || event.ctrlKey || event.altKey || event.metaKey || event.key.length !== 1
      || event.target.closest?.("input, textarea, select, [contenteditable], dialog")) {
      return;
    }
    const goes = Date.now() - going < 2000;
    going = 0;
    if (goes) {
      document.querySelector(`[data-go="${CSS.escape(event.key)}"]`)?.click();
    } else if (event.key === "g") {
      going = Date.now();
      return;
    } else if (actions[event.key]) {
      actions[event.key]();
    } else {
      offered(event.key);
      return;
    }
    event.preventDefault();
  });
};
