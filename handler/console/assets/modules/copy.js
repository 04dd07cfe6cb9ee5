// What a page says of itself can be copied: its link, its id, and the commands that show the same.
import { element, say } from "./base.js";

const select = (node) => {
  const range = document.createRange();
  range.selectNodeContents(node);
  const selection = getSelection();
  selection.removeAllRanges();
  selection.addRange(range);
};

// copy puts a text on the clipboard. On plain http, where pages have none, the old way is tried; where that fails, too, the text is selected.
const copy = async (node, what) => {
  try {
    await navigator.clipboard.writeText(node.textContent);
    say(`Copied ${what}.`);
    return;
  } catch {
    select(node);
  }
  let done = false;
  try {
    done = document.execCommand("copy");
  } catch {
    // It stays selected.
  }
  say(done ? `Copied ${what}.` : `Cannot copy from here. ${what} is selected: copy it with the keys of your system.`);
};

export const offerCopies = (root) => {
  for (const node of root.querySelectorAll("[data-copy]")) {
    if (node.dataset.copy === "the link") {
      const link = new URL(location.href);
      ["done", "refresh"].forEach((name) => link.searchParams.delete(name));
      node.textContent = link.href;
      node.closest("[hidden]")?.removeAttribute("hidden");
      node.parentElement.previousElementSibling?.removeAttribute("hidden");
    }
    const button = element("button", { type: "button", class: "copy" }, "Copy", element("span", { class: "unseen" }, ` ${node.dataset.copy}`));
    button.addEventListener("click", () => copy(node, node.dataset.copy));
    node.after(button);
  }
};
