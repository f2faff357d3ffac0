// What is edited in the chat: Esc gives it up, Enter sends it, and it has the focus. Without this file all of it can be
// tapped.
"use strict";
(() => {
  const composer = document.getElementById("composer");
  if (!composer) return;
  // Esc belongs to what is being edited. Where nothing is, finder.js closes what is open or stops the answer.
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.defaultPrevented || event.isComposing) return;
    if (document.querySelector("dialog[open], :popover-open")) return;
    const form = event.target.closest?.("form[data-edits]");
    if (!form) return;
    event.preventDefault();
    form.querySelector("[data-cancels]").click();
  });
  // Enter sends what is edited, as it sends what is typed.
  document.addEventListener("keydown", (event) => {
    const { target } = event, form = target.closest?.("form[data-edits]");
    if (!form || target.localName !== "textarea" || event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    if (matchMedia("(pointer: coarse)").matches) return;
    event.preventDefault();
    form.requestSubmit(form.querySelector(".primary"));
  });
  const toEnd = (field) => {
    field.focus();
    field.setSelectionRange(field.value.length, field.value.length);
  };
  document.addEventListener("toggle", ({ target }) => {
    if (target.matches?.(".rewriting") && target.open) toEnd(target.querySelector("textarea"));
  }, true);
  // A reset gives the message its own words back; then it is folded, and the focus is where it came from.
  document.addEventListener("reset", ({ target }) => {
    const folded = target.closest(".rewriting");
    if (!folded) return;
    folded.open = false;
    folded.querySelector("summary").focus();
  });
  // A queued message that is edited has the focus if it was this page that asked for it.
  let asked = null;
  document.addEventListener("submit", ({ target, submitter }) => {
    if (submitter?.value === "edit") asked = target.closest("li")?.id;
  });
  document.addEventListener("settled", () => {
    const field = asked && document.querySelector(`#${asked} textarea`);
    if (!field) return;
    asked = null;
    toEnd(field);
  });
})();
