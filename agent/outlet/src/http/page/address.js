// What is shown, in the address: it can be sent, kept as a bookmark, and gone back to. No DOM.

/** Time ranges to choose from, in seconds. */
export const WINDOWS = [300, 900, 3600];
export const USUAL_WINDOW = 900;

/** The fragment for a service (null: none chosen) and a time range. */
export function address({ name, window }) {
  const parts = [];
  if (name !== null) parts.push(`service=${encodeURIComponent(name)}`);
  if (window !== USUAL_WINDOW) parts.push(`window=${window}`);
  return `#${parts.join("&")}`;
}

/** What a fragment says; what it does not say, or not well, is as usual. */
export function parse(fragment) {
  const parts = new Map(fragment.replace(/^#/, "").split("&").map((part) => part.split(/=(.*)/s, 2)));
  const window = Number(parts.get("window"));
  return { name: decoded(parts.get("service")), window: WINDOWS.includes(window) ? window : USUAL_WINDOW };
}

function decoded(text) {
  try {
    return text === undefined ? null : decodeURIComponent(text);
  } catch {
    return null;
  }
}
