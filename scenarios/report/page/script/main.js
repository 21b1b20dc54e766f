/** The entry: opens the data that the page carries and builds its panels; says what keeps it from doing so. */

import { canInflate, openArchive } from "./archive.js";
import { built } from "./blocks.js";
import { button, element, name, replace } from "./dom.js";
import { Run } from "./run.js";
import { createState } from "./state.js";

/** @typedef {{document: any, runs: Run[], state: ReturnType<typeof createState>}} Page */

const NO_INFLATER =
  "this browser lacks DecompressionStream, which Chrome 103, Firefox 113 and Safari 16.4 have. Please open the file " +
  "in one of these or a later version";

async function open() {
  const root = element("div", { class: "page" });
  document.body.append(root);
  try {
    if (!canInflate()) throw new Error(NO_INFLATER);
    const { document: described, arrays } = await openArchive(document.getElementById("data").textContent);
    const runs = described.runs.map((record) => new Run(record, arrays));
    show(root, { document: described, runs, state: createState(runs) });
  } catch (error) {
    const why = `The data of this page cannot be read: ${error.message.replace(/\.$/, "")}.`;
    const failure = element("p", { class: "failure", role: "alert" }, why);
    replace(root, element("main", {}, element("h1", {}, document.title), failure));
    throw error;
  }
}

/** @param {HTMLElement} root @param {Page} page */
function show(root, page) {
  const { title, subtitle, version, command, licences, panels } = page.document;
  const sections = panels.map((panel) => built(page, panel));
  const link = (panel) => element("a", { href: `#${panel.id}` }, panel.querySelector("h2").textContent);
  replace(root,
    element("a", { class: "skip", href: "#main" }, "Skip to the figures"),
    element("header", { class: "top" },
      element("div", { class: "titles" }, element("h1", {}, name(title)), subtitle && element("p", {}, name(subtitle))),
      themeButton(page.state),
      element("nav", { "aria-label": "Panels" }, sections.map(link))),
    element("main", { id: "main", tabindex: "-1" }, sections),
    element("footer", {},
      element("p", {}, `Made by Partita ${version}`, command && [": ", element("code", {}, name(command))]),
      element("details", {}, element("summary", {}, "Licences"), element("pre", {}, licences))));
  requestAnimationFrame(() => requestAnimationFrame(() => (root.dataset.ready = "true"))); // drawn: tests wait for it
}

/** Dark and light follow the system until the button says otherwise; paper is light. */
function themeButton(state) {
  const { dataset } = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";
  const made = button("", () => set(isDark() ? "light" : "dark"), { class: "theme" });
  const set = (theme, printing) => {
    for (const [key, value] of Object.entries({ theme, printing })) {
      if (value) dataset[key] = value;
      else delete dataset[key];
    }
    made.textContent = isDark() ? "Light theme" : "Dark theme";
    state.changed("theme");
  };
  let before;
  addEventListener("beforeprint", () => {
    before = dataset.theme;
    set("light", "true"); // also as wide as paper
  });
  addEventListener("afterprint", () => set(before));
  system.addEventListener("change", () => set(dataset.theme));
  set();
  return made;
}

open();
