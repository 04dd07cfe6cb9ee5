// Ctrl-k, or cmd-k, opens a field that finds pages, what the page can do, and ids: a combobox with its list, as the ARIA practices have it.
import { element } from "./base.js";
import { saved } from "./views.js";

// score says how well a text has the letters in their order: the beginnings of words, and letters in a row, count more. 0 means it has not.
export const score = (text, letters) => {
  const low = text.toLowerCase();
  let at = -1, points = 1;
  for (const letter of letters.toLowerCase().replaceAll(" ", "")) {
    const next = low.indexOf(letter, at + 1);
    if (next < 0) {
      return 0;
    }
    points += next === at + 1 ? 3 : /\W/.test(low[next - 1] ?? " ") ? 2 : 0;
    at = next;
  }
  return points + 1 / (1 + low.length);
};

const root = "/api/console";
const segment = (id) => { // of a path, in two layers, as the server's package urlpath has it
  const inner = id === "." || id === ".." ? id.replaceAll(".", "%2E") : id.replace(/%((?:25)*2[EF])/gi, "%25$1");
  return encodeURIComponent(inner);
};

// found are the things that an id can be of.
const found = (id) => {
  const [engine, key, ...more] = id.split("/");
  const letter = key && more.length === 0
    ? { text: `Dead letter ${id}`, go: `${root}/dead-letters/${segment(engine)}/${segment(key)}` }
    : { text: `Dead letters of the correlation id ${id}`, go: `${root}/dead-letters?status=any&correlationId=${encodeURIComponent(id)}` };
  return [
    { text: `Timeline of the correlation id ${id}`, go: `${root}/timeline?correlationId=${encodeURIComponent(id)}` },
    { text: `Orchestration ${id}`, go: `${root}/orchestrations/${segment(id)}` },
    letter,
  ];
};

const nameOf = (node) => (node.getAttribute("aria-label") ?? node.textContent).trim().replace(/\s+/g, " ");
const offers = () => [
  ...[...document.querySelectorAll("[data-go]")].map((node) => ({ text: nameOf(node), kind: "page", node })),
  ...[...document.querySelectorAll("main .actions :is(a, button), main .commands a, main .tabs a, main .copy, #news a, #theme")]
    .filter((node) => !node.disabled).map((node) => ({ text: nameOf(node), kind: "action", node })),
  ...saved().map((view) => ({ text: view.name, kind: "view", go: view.at })),
  { text: "Keys", kind: "help", node: null },
];

export const palette = () => {
  const dialog = document.getElementById("palette");
  const field = document.getElementById("palette-text");
  const list = document.getElementById("palette-list");
  const count = document.getElementById("palette-count");
  let shown = [], at = 0, all = [];

  const mark = (to) => {
    at = shown.length ? (to + shown.length) % shown.length : 0;
    [...list.children].forEach((option, n) => option.setAttribute("aria-selected", String(n === at)));
    const option = list.children[at];
    option?.scrollIntoView({ block: "nearest" });
    if (option) {
      field.setAttribute("aria-activedescendant", option.id);
    } else {
      field.removeAttribute("aria-activedescendant");
    }
  };
  const show = () => {
    const text = field.value.trim();
    const scored = all.map((offer) => ({ offer, points: text ? score(offer.text, text) : 1 })).filter((s) => s.points > 0);
    scored.sort((a, b) => b.points - a.points);
    shown = [...scored.map((s) => s.offer), ...(text ? found(text) : [])];
    list.replaceChildren(...shown.map((offer, n) => {
      const option = element("li", { role: "option", id: `palette-${n}` }, offer.text, " ", element("span", { class: "quiet" }, offer.kind ?? ""));
      option.addEventListener("click", () => take(offer));
      return option;
    }));
    count.textContent = `${shown.length} found`;
    mark(0);
  };
  const take = (offer) => {
    dialog.close();
    if (offer.go) {
      location.assign(offer.go);
    } else if (offer.node) {
      offer.node.click();
    } else {
      document.getElementById("help").showModal();
    }
  };
  const open = () => {
    all = offers();
    field.value = "";
    show();
    dialog.showModal();
    field.focus();
  };

  field.addEventListener("input", show);
  field.addEventListener("keydown", (event) => {
    const moves = { ArrowDown: at + 1, ArrowUp: at - 1 };
    if (event.key in moves) {
      mark(moves[event.key]);
    } else if (event.key === "Enter" && !event.isComposing) {
      if (shown[at]) {
        take(shown[at]);
      }
    } else {
      return;
    }
    event.preventDefault();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) {
      return;
    }
    event.preventDefault();
    if (dialog.open) {
      dialog.close();
    } else if (!document.querySelector("dialog[open]")) {
      open();
    }
  });
  const button = document.getElementById("go");
  button.addEventListener("click", open);
  button.hidden = false;
};
