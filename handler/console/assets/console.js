// The theme that somebody has chosen is set before the page is drawn, or it would flash in the other one: so this is no module,
// which would run afterwards. Without scripts, and without a choice, the theme is the system's.
(() => {
  const themes = ["system", "light", "dark"];
  const root = document.documentElement;
  const chosen = () => {
    try {
      const theme = localStorage.getItem("theme");
      return themes.includes(theme) ? theme : "system";
    } catch { // storage is blocked
      return "system";
    }
  };
  const apply = (theme) => {
    if (theme === "system") {
      delete root.dataset.theme;
    } else {
      root.dataset.theme = theme;
    }
  };
  apply(chosen());
  document.addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    let theme = chosen();
    const show = () => { button.lastElementChild.textContent = theme; };
    button.addEventListener("click", () => {
      theme = themes[(themes.indexOf(theme) + 1) % themes.length];
      try {
        localStorage.setItem("theme", theme);
      } catch {
        // It holds for this page.
      }
      apply(theme);
      show();
    });
    show();
    button.hidden = false;
  });
})();
