// Elements from data. Text is always set as text, never as HTML: names of services and files
// are chosen by others.

/**
 * An element. Attributes that are null, undefined or false are left out; `share` (0 to 1) is a
 * width and `colour` the name of one, since inline styles are forbidden here. Children that are null
 * or false are left out, others that are no elements are text.
 */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    const attribute = name === "share" || name === "colour" ? `data-${name}` : name;
    element.setAttribute(attribute, value === true ? "" : String(value));
  }
  const kept = children.flat(2).filter((child) => child !== null && child !== undefined && child !== false);
  element.append(...kept.map((child) => (child instanceof Node ? child : String(child))));
  return element;
}

/** Makes the children of an element like these, and keeps what is already so: focus stays. */
export function fill(element, ...children) {
  reconcile(element, h("div", {}, ...children));
  style(element);
}

function reconcile(old, wanted) {
  const olds = [...old.childNodes];
  const wanteds = [...wanted.childNodes];
  wanteds.forEach((node, at) => {
    const present = olds[at];
    if (!present) old.append(node);
    else if (!alike(present, node)) present.replaceWith(node);
    else if (present.nodeType === Node.TEXT_NODE) {
      if (present.data !== node.data) present.data = node.data;
    } else {
      takeAttributes(present, node);
      reconcile(present, node);
    }
  });
  olds.slice(wanteds.length).forEach((node) => node.remove());
}

/** What has another key is another thing. */
function alike(one, other) {
  const key = (node) => node.dataset?.key;
  return one.nodeName === other.nodeName && key(one) === key(other);
}

function takeAttributes(old, wanted) {
  // What is open is a person's choice once it is there; and widths are set below.
  const kept = new Set(["open", "style"]);
  for (const { name, value } of [...wanted.attributes]) {
    if (!kept.has(name) && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  for (const { name } of [...old.attributes]) {
    if (!kept.has(name) && !wanted.hasAttribute(name)) old.removeAttribute(name);
  }
}

function style(element) {
  for (const one of element.querySelectorAll("[data-share]")) {
    one.style.width = `${Math.min(100, one.dataset.share * 100)}%`;
  }
  for (const one of element.querySelectorAll("[data-colour]")) {
    one.style.background = `var(--${one.dataset.colour})`;
  }
}

/** A table: a caption, headings, and rows of cells; the first cell of a row heads it. */
export function table({ caption, hidden, headings, rows }) {
  const title = h("caption", { class: hidden && "visually-hidden" }, caption);
  const head = headings.map((heading, at) =>
    heading.nodeName === "TH" ? heading : h("th", { scope: "col", class: at > 0 && "number" }, heading),
  );
  const body = rows.map(([first, ...cells]) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, first),
      cells.map((cell) => (cell instanceof Node ? cell : h("td", { class: "number" }, cell))),
    ),
  );
  return h("table", {}, title, h("thead", {}, h("tr", {}, head)), h("tbody", {}, body));
}

/** A cell with a bar as long as the share (0 to 1). */
export function barCell(share, colour) {
  const bar = h("span", { share: share.toFixed(4), colour });
  return h("td", { class: "bar-column" }, h("span", { class: "bar", "aria-hidden": "true" }, bar));
}
