// Keys and marks of the inbox. It comes after app.js; without it everything works by links and buttons.
"use strict";
(() => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  // A message that is in view was opened. That is said once, whatever comes of it.
  const told = new Set();
  const opened = () => {
    const form = document.querySelector("form[data-opened]");
    if (!form || document.hidden || told.has(form.action)) return;
    told.add(form.action);
    form.requestSubmit();
  };
  document.addEventListener("settled", opened);
  document.addEventListener("visibilitychange", opened);
  opened();

  // What was dismissed in the list can be put back for a moment. Otherwise it is found among what was dismissed.
  const list = document.getElementById("inbox"), toast = document.getElementById("toast");
  let offered;
  document.addEventListener("sent", ({ detail: { form, told } }) => {
    const path = form.getAttribute("action");
    if (offered?.contains(form)) toast.replaceChildren();
    if (!path.endsWith("/dismiss") || told.said || told.to !== location.pathname) return;
    const undo = form.cloneNode(), button = document.createElement("button");
    // Its form is still busy with the dismissal.
    delete undo.dataset.busy;
    undo.action = path.replace(/dismiss$/, "restore");
    button.textContent = list.dataset.undo;
    button.dataset.testid = "inbox-undo";
    undo.append(form.elements.csrf.cloneNode(), button);
    offered = document.createElement("span");
    offered.append(list.dataset.dismissed, " ", undo);
    toast.dataset.kind = "fine";
    toast.replaceChildren(offered);
    const mine = offered;
    setTimeout(() => mine.remove(), 10000);
  });

  // Filters apply at once.
  document.addEventListener("change", ({ target }) => {
    if (target.matches("select[data-submits]")) target.form.requestSubmit();
  });

  // Up and down go from message to message, and / to the search.
  const rows = () => all("#inbox li > a").filter((row) => row.checkVisibility());
  const step = (by) => {
    const list = rows(), at = list.indexOf(document.activeElement);
    list[at < 0 ? (by > 0 ? 0 : list.length - 1) : at + by]?.focus();
  };
  document.addEventListener("keydown", (event) => {
    const typing = event.target.matches("input, textarea, select");
    if (event.ctrlKey || event.metaKey || event.altKey || typing) return;
    const act = { ArrowDown: () => step(1), ArrowUp: () => step(-1), "/": () => document.getElementById("find")?.focus() }[event.key];
    if (!act || !(event.key === "/" ? document.getElementById("find") : rows().length)) return;
    event.preventDefault();
    act();
  });
})();
