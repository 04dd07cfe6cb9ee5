// What the other modules share.

// What a person has chosen is kept in this browser, and sent to nobody.
export const chosen = (name, valid, otherwise) => {
  try {
    const value = localStorage.getItem(name);
    return value !== null && valid(value) ? value : otherwise;
  } catch { // storage is blocked
    return otherwise;
  }
};

export const choose = (name, value) => {
  try {
    localStorage.setItem(name, value);
  } catch {
    // It holds for this page.
  }
};

// choice joins a select of the page's end to what it is kept as, and calls changed now and at each change.
export const choice = (name, otherwise, changed) => {
  const select = document.getElementById(name);
  const valid = (value) => [...select.options].some((option) => option.value === value);
  select.value = chosen(name, valid, otherwise);
  select.addEventListener("change", () => {
    choose(name, select.value);
    changed(select.value);
  });
  changed(select.value);
};

// say tells a text to whoever listens to the page.
export const say = (text) => {
  const said = document.getElementById("said");
  said.textContent = "";
  setTimeout(() => { said.textContent = text; }, 50); // the same text twice is news only in between
};

// element makes one of a page. Its texts stay texts.
export const element = (name, attributes = {}, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
};
