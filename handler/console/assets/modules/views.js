// Views of lists that a person has given a name: the address of a list with its filters, kept in this browser. A view is shared by its address.
import { element, say } from "./base.js";

const root = "/api/console";
const key = "views";
const most = 50;
const longest = 80; // of a name, in UTF-16 units
const longestAddress = 2000;

// good says whether something that was kept is a view: storage can hold whatever somebody has put there.
const good = (view) => {
  if (typeof view?.name !== "string" || view.name.trim() === "" || view.name.length > longest || typeof view.at !== "string" || view.at.length > longestAddress) {
    return false;
  }
  try {
    const at = new URL(view.at, location.origin);
    return at.origin === location.origin && at.pathname.startsWith(`${root}/`) && at.pathname + at.search === view.at;
  } catch {
    return false;
  }
};

// saved are the views, by name.
export const saved = () => {
  try {
    const kept = JSON.parse(localStorage.getItem(key) ?? "[]");
    return Array.isArray(kept) ? kept.filter(good).slice(0, most) : [];
  } catch { // storage is blocked, or damaged
    return [];
  }
};

const keep = (views) => {
  try {
    localStorage.setItem(key, JSON.stringify(views.sort((a, b) => a.name.localeCompare(b.name))));
    return true;
  } catch {
    say("This browser keeps nothing for this page, so the view is not saved.");
    return false;
  }
};

// addressOf is the address of a list from its beginning on, without what tells of something that was just done.
export const addressOf = (href) => {
  const at = new URL(href);
  ["continuationToken", "done", "refresh", "purged", "all"].forEach((name) => at.searchParams.delete(name));
  return at.pathname + at.search;
};

// save keeps the list that is shown under a name, and says what came of it.
const save = (name) => {
  const view = { name: name.trim(), at: addressOf(location.href) };
  const others = saved().filter((other) => other.name !== view.name);
  if (!good(view)) {
    say("The view is not saved: its name or its address is too long.");
  } else if (others.length >= most) {
    say(`The view is not saved: there are ${most} already. Remove one.`);
  } else if (keep([...others, view])) {
    say("The view is saved in this browser.");
    return true;
  }
  return false;
};

// views offers, on a list, those of the list, and to save what it shows.
export const views = () => {
  const filter = document.querySelector("main details.filter");
  if (!filter) {
    return;
  }
  const list = element("ul", { class: "chips" });
  const none = element("p", { class: "quiet" }, "None of this list yet.");
  const summary = element("summary", {}, "Saved views");
  const field = element("input", { required: "", maxlength: String(longest), autocomplete: "off", spellcheck: "false" });
  const form = element("form", {}, element("label", {}, "Name of what is shown now ", field), element("p", {}, element("button", {}, "Save in this browser")));
  const show = () => {
    const here = saved().filter((view) => view.at.split("?")[0] === location.pathname);
    none.hidden = here.length > 0;
    list.hidden = here.length === 0;
    list.replaceChildren(...here.map((view) => {
      const remove = element("button", { type: "button", class: "copy" }, "Remove", element("span", { class: "unseen" }, " the view ", element("bdi", {}, view.name)));
      remove.addEventListener("click", () => {
        if (keep(saved().filter((other) => other.name !== view.name))) {
          say("The view is removed.");
          show();
          summary.focus();
        }
      });
      const link = element("a", { class: "chip", href: view.at }, element("bdi", {}, view.name));
      if (view.at === addressOf(location.href)) {
        link.setAttribute("aria-current", "page");
      }
      return element("li", {}, link, " ", remove);
    }));
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (save(field.value)) {
      field.value = "";
      show();
    }
  });
  addEventListener("storage", (event) => event.key === key && show());
  show();
  filter.after(element("details", { class: "filter", id: "views" }, summary, none, list, form));
};
