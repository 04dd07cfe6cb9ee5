// A page that has news says so. It asks for itself again with the ETag of what it shows, and mostly hears that there is nothing new. A list says
// how much is new, in a link, and its rows stay where they are; a page that is followed shows itself anew.
import { choice, element } from "./base.js";

const slowest = 300; // seconds, when nothing answers

// A row is told from others by where it leads to, else by what it says. How long ago something was is no news.
const textOf = (row) => {
  const copy = row.cloneNode(true);
  for (const ago of copy.querySelectorAll(".ago, input")) {
    ago.remove();
  }
  return copy.textContent;
};
const keyOf = (row) => [...row.cells].find((cell) => !cell.querySelector("input"))?.querySelector("a[href]")?.getAttribute("href") ?? textOf(row);
const rowsOf = (root) => new Map([...root.querySelectorAll("main tbody tr")].map((row) => [keyOf(row), textOf(row)]));

export const news = (drawn, latest) => {
  const fresh = [...latest.keys()].filter((key) => !drawn.has(key)).length;
  if (fresh > 0) {
    return `${fresh}${fresh === latest.size && drawn.size > 0 ? " or more" : ""} new`;
  }
  const same = drawn.size === latest.size && [...drawn].every(([key, text]) => latest.get(key) === text);
  return same ? "" : "There are changes";
};

export const watch = (enhance) => {
  let { tag, every } = document.body.dataset;
  const follows = "follow" in document.body.dataset;
  const region = document.getElementById("news");
  const drawn = rowsOf(document);
  let seconds = 0, failures = 0, latest = Date.now(), latestNews = "", timer;

  const interval = () => Math.max(seconds, Number(every)); // a page may cost so much that it is asked for less often
  const plan = () => {
    clearTimeout(timer);
    if (!tag || !seconds || document.hidden) {
      return;
    }
    const pause = Math.max(interval(), Math.min(slowest, interval() * 2 ** failures));
    timer = setTimeout(look, Math.max(0, latest + 1000 * pause - Date.now()));
  };
  let told = ""; // what is new, as it was said last
  const tell = (text) => {
    if (text !== told) {
      told = text;
      region.replaceChildren(...(text ? [element("a", { href: location.pathname + location.search }, text)] : []));
    }
  };
  const failed = () => {
    if (++failures === 1) {
      told = "";
      region.replaceChildren("The app does not answer. This page goes on asking, less and less often.");
    }
  };

  const look = async () => {
    try {
      const answer = await fetch(location.href, {
        redirect: "manual", cache: "no-store", signal: AbortSignal.timeout(60_000),
        headers: { "If-None-Match": tag, "Cache-Control": `max-age=${Math.floor(interval() * 2 / 3)}` },
      });
      latest = Date.now();
      if (answer.type === "opaqueredirect" || [401, 403, 404].includes(answer.status)) {
        location.reload(); // whoever looked is signed out, or may not see it any more: the page says which
        return;
      }
      if (answer.status === 304) {
        heard();
      } else if (answer.ok) {
        heard();
        take(new DOMParser().parseFromString(await answer.text(), "text/html"));
      } else {
        failed();
      }
    } catch { // no answer
      latest = Date.now();
      failed();
    }
    plan();
  };
  const heard = () => {
    if (failures > 0) {
      failures = 0;
      region.replaceChildren();
      tell(latestNews);
    }
  };
  const take = (page) => {
    if (!follows) {
      tag = page.body.dataset.tag ?? tag;
      latestNews = news(drawn, rowsOf(page));
      tell(latestNews);
      return;
    }
    if (document.querySelector("dialog[open]") || !getSelection().isCollapsed) {
      return; // somebody is at something: with the old tag, the next look brings this again
    }
    ({ tag, every } = page.body.dataset);
    replace(page.querySelector("main"));
    say();
  };

  // replace shows the content of another page in place of this one's, and keeps the focus where it is.
  const replace = (main) => {
    const here = document.getElementById("main");
    const at = document.activeElement;
    const held = here.contains(at) && at !== here ? [at.tagName, at.textContent] : null;
    main.querySelector("#news")?.remove();
    [...here.children].filter((child) => child !== region).forEach((child) => child.remove());
    here.append(...main.children);
    enhance(here);
    if (held) {
      const again = [...here.querySelectorAll(held[0])].find((other) => other.textContent === held[1]);
      (again ?? here).focus({ preventScroll: true });
    }
  };
  // say tells what has become of it to those who cannot see that.
  let said = "";
  const say = () => {
    const text = document.querySelector("#main [role=status]")?.textContent ?? "";
    if (text !== said) {
      said = text;
      document.getElementById("said").textContent = text;
    }
  };

  const start = (value) => {
    seconds = Number(value);
    plan();
  };
  if (follows) {
    choice("every", "15", () => {});
    start(every);
  } else {
    choice("every", "15", start);
  }
  document.addEventListener("visibilitychange", plan);
};
