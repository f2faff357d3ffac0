// Attaches files to a message by button, paste and drop. Each is with Kai until its message is sent.
"use strict";
(() => {
  const el = (id) => document.getElementById(id);
  const tray = el("attached"), input = el("chat-input"), composer = el("composer"), app = document.querySelector(".app");
  if (!tray || !composer) return;
  const words = tray.dataset, choose = el("attach-choose"), field = el("files");
  const about = (sentence, name) => sentence.replace("{name}", name);
  const say = (...said) => window.kai.say(...said);

  // What is attached is part of the form; a message with a file needs no words.
  const settle = () => {
    field.value = [...tray.querySelectorAll("[data-file]")].map((chip) => chip.dataset.file).join(",");
    input.required = !tray.children.length;
    tray.hidden = !tray.children.length;
  };
  const post = (path, body, more) =>
    fetch(path, { method: "POST", body, headers: { "x-live": "1", "x-csrf-token": composer.elements.csrf.value, ...more } });

  let coming = 0, sends = false;
  const take = async (file) => {
    if (tray.children.length >= Number(words.most)) return say(words.tooMany);
    if (file.size > Number(words.largest)) return say(about(words.tooBig, file.name));
    const chip = document.createElement("li");
    chip.className = "chip-file";
    chip.append(Object.assign(document.createElement("span"), { className: "pulse" }), about(words.reading, file.name));
    tray.append(chip);
    coming += 1;
    settle();
    try {
      const meant = new URLSearchParams({ chat: app.dataset.chat ?? "", model: el("model-picker")?.value ?? "" });
      const answer = await post(`${window.kai.under}/attach?${meant}`, file, { "x-file-name": encodeURIComponent(file.name) });
      if (answer.status === 401) return location.reload();
      const told = await answer.json();
      if (!answer.ok) throw told.error;
      const made = document.createElement("template");
      made.innerHTML = told.chip;
      chip.replaceWith(made.content);
      if (told.warning) say(told.warning, "trouble", null, told.remedy);
    } catch (why) {
      chip.remove();
      sends = false;
      say(typeof why === "string" ? why : about(words.failed, file.name));
    } finally {
      coming -= 1;
      settle();
      if (!coming && sends) {
        sends = false;
        composer.requestSubmit(el("send"));
      }
    }
  };
  const takeAll = (files) => {
    say("");
    [...files].forEach(take);
    input.focus();
  };

  el("attach").addEventListener("click", () => choose.click());
  choose.addEventListener("change", () => {
    takeAll(choose.files);
    choose.value = "";
  });
  // Text that comes with a picture of itself, as spreadsheets give it, is pasted as text.
  document.addEventListener("paste", (event) => {
    const files = event.clipboardData?.files ?? [];
    const elsewhere = event.target !== input && event.target.closest?.("input, textarea, [contenteditable]");
    if (!files.length || elsewhere || event.clipboardData.types.includes("text/plain")) return;
    event.preventDefault();
    takeAll(files);
  });
  const dragged = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
  const over = (is) => {
    app.classList.toggle("dropping", is);
    app.dataset.drop = words.drop;
  };
  document.addEventListener("dragover", (event) => {
    if (!dragged(event)) return;
    event.preventDefault();
    event.dataTransfer.dropEffect = "copy";
    over(true);
  });
  document.addEventListener("dragleave", (event) => { if (!event.relatedTarget) over(false); });
  document.addEventListener("drop", (event) => {
    over(false);
    if (!dragged(event)) return;
    event.preventDefault();
    takeAll(event.dataTransfer.files);
  });

  tray.addEventListener("click", (event) => {
    const button = event.target.closest("[data-detach]");
    if (!button) return;
    const chip = button.closest("li");
    post(`${window.kai.under}/attach/${chip.dataset.file}/remove`).catch(() => {});
    chip.remove();
    settle();
    say("");
    input.focus();
  });
  // A message waits for its files.
  document.addEventListener("submit", (event) => {
    if (event.target !== composer || !coming || event.submitter?.hasAttribute("formaction")) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    sends = true;
  }, true);
  // What went along is not here any more; what was attached meanwhile stays for the next message.
  document.addEventListener("sent", ({ detail: { form, button, body } }) => {
    if (form !== composer || button?.hasAttribute("formaction")) return;
    const sent = body.get("files")?.split(",") ?? [];
    for (const chip of tray.querySelectorAll("[data-file]")) if (sent.includes(chip.dataset.file)) chip.remove();
    settle();
  });

  // A picture opens large over the page; Escape, a click beside it and the button close it.
  const large = document.createElement("dialog");
  large.className = "large";
  const shown = document.createElement("img"), close = document.createElement("button");
  Object.assign(close, { type: "button", className: "round", ariaLabel: words.close, title: words.close, textContent: "×" });
  large.append(shown, close);
  document.body.append(large);
  large.addEventListener("click", (event) => { if (event.target !== shown) large.close(); });
  // The page may have its own use for Escape.
  large.addEventListener("keydown", (event) => { if (event.key === "Escape") event.stopPropagation(); });
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a.picture");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    shown.src = link.href;
    shown.alt = link.querySelector("img").alt;
    large.ariaLabel = shown.alt;
    large.showModal();
  });
  settle();
})();
