// Light or dark: as the system has it, unless a person chose.

const KEY = "tlsprof-theme";
const system = matchMedia("(prefers-color-scheme: dark)");

/** Sets the theme, and calls `changed` whenever it changes. */
export function followTheme(button, changed) {
  const apply = () => {
    const theme = chosen() ?? (system.matches ? "dark" : "light");
    document.documentElement.dataset.theme = theme;
    button.textContent = theme === "dark" ? "Light theme" : "Dark theme";
    changed();
  };
  system.addEventListener("change", apply);
  button.addEventListener("click", () => {
    const next = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    choose(next);
    apply();
  });
  apply();
}

// Storage may be forbidden: then the choice holds until the page is left.
let unsaved = null;

function chosen() {
  try {
    return localStorage.getItem(KEY) ?? unsaved;
  } catch {
    return unsaved;
  }
}

function choose(theme) {
  unsaved = theme;
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // Kept in `unsaved`.
  }
}
