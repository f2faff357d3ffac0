// Keys for the list of chats and the search. It comes after app.js; without it everything works by links and buttons.
"use strict";
(() => {
  const el = (id) => document.getElementById(id);
  const finder = el("finder"), sheet = el("shortcuts"), side = el("side");

  // The list: what the address unfolds is folded again when it is done, and the focus goes on where it was.
  const address = (change) => {
    const there = new URL(location);
    change(there.searchParams);
    history.replaceState(null, "", there);
    kai.follow();
  };
  const row = (form) => form.closest("li")?.id;
  let next = null;
  document.addEventListener("sent", ({ detail: { form } }) => {
    if (!form.hasAttribute("data-shuts")) return;
    const gone = form.getAttribute("action").endsWith("/delete");
    if (!gone) next = row(form);
    // The offer to undo stands on the page, which the drawer covers.
    if (gone && side?.matches(":popover-open")) side.hidePopover();
    // The page of a chat that is gone has nothing to show.
    if (gone && form.getAttribute("action") === `${kai.under}/c/${document.querySelector(".app").dataset.chat}/delete`) return location.assign(`${kai.under}/`);
    address((query) => {
      query.delete("menu");
      query.delete("rename");
    });
  });
  document.addEventListener("click", ({ target }) => {
    const cancels = target.closest(".naming [data-cancels]");
    if (cancels) next = row(cancels);
  });
  const named = document.title, begun = new WeakSet();
  const settled = () => {
    const field = document.querySelector(".naming input[type=text]");
    if (field && !begun.has(field)) {
      begun.add(field);
      field.focus();
      field.select();
    }
    const again = next && el(next)?.querySelector("a");
    if (again && !field) {
      again.focus();
      next = null;
    }
    if (from != null && rows().length > from) {
      rows()[from].querySelector("a").focus();
      from = null;
    }
    const title = el("title");
    if (title) document.title = named.replace(/^.*(?= · )/s, () => title.textContent);
    watch();
  };
  // The rest of the list comes when its end does. Who got there with keys goes on with the first chat that came.
  let asked = null, from = null;
  const rows = () => document.querySelectorAll("#chats li");
  const end = new IntersectionObserver((seen) => {
    const older = seen.find((one) => one.isIntersecting)?.target;
    if (!older || asked === older.href) return;
    asked = older.href;
    from = older === document.activeElement ? rows().length : null;
    address((query) => query.set("listed", new URL(older.href).searchParams.get("listed")));
  });
  const watch = () => {
    end.disconnect();
    const older = el("list-older");
    if (older) end.observe(older);
  };
  document.addEventListener("settled", settled);
  if (window.kai) settled();
  // The chat that is open is in view.
  document.querySelector("#chats .here")?.scrollIntoView({ block: "nearest" });

  // A message that was found: it is brought into view, and its words are marked.
  const hit = el("hit");
  if (hit) {
    const wanted = (new URLSearchParams(location.search).get("q") ?? "").toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
    const ranges = [];
    const texts = document.createTreeWalker(hit, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      const text = texts.currentNode;
      for (const { index, 0: word } of text.data.matchAll(/[\p{L}\p{N}]+/gu)) {
        const begins = wanted.find((begin) => word.toLowerCase().startsWith(begin));
        if (begins) ranges.push(new StaticRange({ startContainer: text, startOffset: index, endContainer: text, endOffset: index + word.length }));
      }
    }
    if (CSS.highlights) CSS.highlights.set("found", new Highlight(...ranges));
    const first = ranges[0]?.startContainer.parentElement;
    (hit.offsetHeight > innerHeight / 2 && first ? first : hit).scrollIntoView({ block: "center" });
  }
  if (!finder) return;

  // The search over everything.
  const input = el("finder-input"), results = el("finder-results");
  const options = () => [...results.querySelectorAll("[role=option]")];
  const choose = (option) => {
    for (const other of options()) other.ariaSelected = String(other === option);
    if (option) input.setAttribute("aria-activedescendant", option.id);
    else input.removeAttribute("aria-activedescendant");
    option?.scrollIntoView({ block: "nearest" });
  };
  const chosen = () => results.querySelector("[aria-selected=true]");
  let wait, number = 0;
  const find = async () => {
    const mine = ++number, q = input.value;
    try {
      const answer = await fetch(`${kai.under}/search?q=${encodeURIComponent(q)}`, { headers: { "x-live": "1" } });
      if (mine !== number) return;
      if (!answer.ok) return location.reload();
      results.innerHTML = await answer.text();
    } catch {
      results.textContent = el("words").dataset.noAnswer;
    }
    choose(options()[0]);
    clearTimeout(wait);
    // What comes from a phone takes a moment.
    if (results.querySelector("[data-loading]") && finder.open) wait = setTimeout(find, 800);
  };
  const open = () => {
    if (sheet.open) sheet.close();
    if (side?.matches(":popover-open")) side.hidePopover();
    if (!finder.open) finder.showModal();
    input.select();
    find();
  };
  input.addEventListener("input", () => {
    clearTimeout(wait);
    wait = setTimeout(find, 120);
  });
  input.addEventListener("keydown", (event) => {
    // A browser would empty the field first.
    if (event.key === "Escape") {
      event.preventDefault();
      return finder.close();
    }
    const all = options(), at = all.indexOf(chosen());
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[event.key];
    if (to == null || !all.length || (/^(Home|End)$/.test(event.key) && input.value)) return;
    event.preventDefault();
    choose(all.at(to % all.length));
  });
  // Enter goes to what is chosen, also when that is not what was typed last: then that is found first.
  finder.querySelector("form").addEventListener("submit", async (event) => {
    event.preventDefault();
    clearTimeout(wait);
    await find();
    chosen()?.click();
  });
  results.addEventListener("click", ({ target }) => {
    if (target.closest("[role=option]")) finder.close();
  });

  const show = () => {
    if (finder.open) finder.close();
    if (!sheet.open) sheet.showModal();
  };
  document.addEventListener("click", (event) => {
    const { target } = event;
    if (target.closest("[data-closes-dialog]") || target === finder || target === sheet) target.closest("dialog").close();
    if (target.closest("[data-shortcuts]")) show();
    if (!target.closest("a[data-finds]") || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    open();
  });
  const fresh = () => location.assign(`${kai.under}/new`);
  // Closes what is open, and otherwise stops the answer. Dialogs and drawers close by themselves.
  const escape = () => {
    const cancels = document.querySelector(".naming [data-cancels]") ?? document.querySelector("#chats [aria-expanded=true].more-of");
    if (cancels) return cancels.click();
    el("stop")?.click();
  };
  document.addEventListener("keydown", (event) => {
    const { key, code, ctrlKey, metaKey, altKey, target } = event;
    if (event.defaultPrevented || event.isComposing) return;
    const typing = target.matches("input:not([type=range], [type=checkbox], [type=radio]), textarea, select");
    const modal = finder.open || sheet.open || document.querySelector(":popover-open");
    const act =
      (ctrlKey || metaKey) && !altKey && key.toLowerCase() === "k" ? open
      : altKey && !ctrlKey && !metaKey && code === "KeyN" ? fresh
      : ctrlKey || metaKey || altKey ? null
      : key === "?" && !typing && !finder.open ? show
      : key === "Escape" && !modal && (!typing || target.id === "chat-input" || target.closest(".naming")) ? escape
      : null;
    if (!act) return;
    event.preventDefault();
    act();
  });
})();
