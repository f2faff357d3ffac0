// Looks after what of each draft is in view. It comes after app.js, and only on pages that can show drafts.
"use strict";
(() => {
  const box = document.getElementById("banners");
  const all = (selector) => document.querySelectorAll(selector);
  if (!box) return;
  const { little, places, hold, say } = window.kai;

  // Nobody sends what they have not seen: a draft's Send, and what opens it on the phone, work while its recipient and
  // all of its text are in view. A text too long for that must have been in view part by part; the head with the
  // recipient sticks and stays in view.
  const PART = 16;
  const read = new WeakMap();
  const sight = (card) => {
    const rect = (selector) => card.querySelector(selector).getBoundingClientRect();
    const taps = card.querySelectorAll(".choices .tap");
    if (!taps.length || !card.querySelector(".draft-body").checkVisibility()) return { taps };
    const frame = box.getBoundingClientRect();
    const top = Math.max(frame.top, 0), bottom = Math.min(frame.bottom, innerHeight) + 1;
    const head = rect(".draft-head"), to = rect(".draft-to"), text = rect(".draft-body"), choices = rect(".choices");
    const edge = Math.max(top, head.bottom) - 1;
    const fits = choices.bottom - text.top + head.height <= bottom - top;
    const seen = partsSeen(card, text, edge, bottom);
    const whole = fits ? text.top >= edge && text.bottom <= bottom : seen.whole;
    const live = whole && to.top >= top - 1 && to.bottom <= bottom;
    return { taps, text, choices, head, top, bottom, edge, fits, seen, live };
  };
  // Which parts of a text were in view so far. Another text, or another height of it, begins anew.
  const partsSeen = (card, text, edge, bottom) => {
    const digest = card.querySelector("[name=shown]").value, count = Math.ceil(text.height / PART);
    let seen = read.get(card);
    if (seen?.digest !== digest || (!seen.whole && seen.height !== text.height)) {
      seen = { digest, height: text.height, parts: new Set(), whole: false };
      read.set(card, seen);
    }
    // In a tab that is not in front nobody sees anything.
    for (let n = 0; n < count && !document.hidden; n += 1) {
      const from = text.top + n * PART;
      if (from >= edge && Math.min(from + PART, text.bottom) <= bottom) seen.parts.add(n);
    }
    seen.whole ||= seen.parts.size === count;
    return seen;
  };
  // A button that is only marked as disabled keeps its place in the order of keys, and can say why.
  const look = () => {
    for (const card of all(".draft")) {
      const { taps, live } = sight(card);
      card.toggleAttribute("data-unseen", taps.length > 0 && !live);
      for (const tap of taps) {
        if (live) for (const name of ["aria-disabled", "aria-describedby"]) tap.removeAttribute(name);
        else {
          tap.setAttribute("aria-disabled", "true");
          tap.setAttribute("aria-describedby", `${card.id}-why`);
        }
      }
    }
  };
  // Brings into view what is missing: the draft, or the next part of a long text, or its Send once all was seen.
  const bring = (card) => {
    const { text, choices, head, top, bottom, edge, fits, seen } = sight(card);
    if (!text) return;
    const toSend = choices.bottom - bottom + 4, to = (y) => y - top - head.height - 4;
    let part = 0;
    while (seen.parts.has(part)) part += 1;
    if (fits) box.scrollTop += text.top < edge ? to(text.top) : Math.max(0, toSend);
    else box.scrollTop += seen.whole ? toSend : to(text.top + part * PART);
    look();
  };
  const eye = new IntersectionObserver(look, { threshold: [0, 0.25, 0.5, 0.75, 1] });
  const watch = () => {
    for (const part of all(".draft-to, .draft-body")) eye.observe(part);
    look();
  };
  box.addEventListener("scroll", look, { passive: true });
  addEventListener("resize", look);
  document.addEventListener("toggle", look, true);
  const draftOf = (target) => target.closest?.(".draft .choices .tap")?.closest(".draft");
  document.addEventListener("click", (event) => {
    const card = draftOf(event.target);
    if (!card || event.defaultPrevented) return;
    look();
    if (!card.hasAttribute("data-unseen")) return;
    event.preventDefault();
    event.stopPropagation();
    const before = places();
    bring(card);
    hold(before);
    say(document.querySelector(".drafts").dataset.unread, "fine");
  }, true);
  // Who comes by keyboard is shown the draft before they can press its Send. A key that is held down is one press.
  document.addEventListener("focusin", ({ target }) => {
    const card = draftOf(target);
    if (card && target.matches(":focus-visible")) bring(card);
  });
  document.addEventListener("keydown", (event) => {
    if (event.repeat && draftOf(event.target)) event.preventDefault();
  });
  // All drafts but the first are one line until somebody wants to see them. This browser remembers that, and which
  // drafts were folded where there is room for all.
  const KEY = "kai-drafts";
  const remembered = () => {
    try {
      const { open = false, folded = [] } = JSON.parse(localStorage.getItem(KEY) ?? "{}");
      return { open, folded };
    } catch {
      return { open: false, folded: [] };
    }
  };
  const remember = (change) => {
    try {
      localStorage.setItem(KEY, JSON.stringify({ ...remembered(), ...change }));
    } catch {
      // A browser that keeps nothing still folds.
    }
  };
  const root = document.documentElement;
  const stack = (open) => {
    root.classList.toggle("drafts-open", open);
    document.getElementById("drafts-more")?.setAttribute("aria-expanded", open);
  };
  document.addEventListener("click", ({ target }) => {
    if (!target.closest?.("#drafts-more")) return;
    const before = places(), open = !root.classList.contains("drafts-open");
    stack(open);
    remember({ open });
    hold(before);
    look();
  });
  document.addEventListener("click", ({ target }) => {
    const fold = target.closest?.(".fold > summary")?.parentElement;
    if (!fold) return;
    const id = fold.closest(".draft").dataset.draft, others = remembered().folded.filter((other) => other !== id);
    // Where there is little room it is folded by now; elsewhere it is still as it was before this click.
    remember({ folded: fold.open !== little.matches ? [...others, id].slice(-50) : others });
  });
  // A draft is folded as it was left; one that is being edited is open, and its text has the focus.
  const met = new WeakSet();
  let editing = null;
  const refold = () => {
    const { folded } = remembered();
    for (const fold of all(".fold")) {
      if (met.has(fold)) continue;
      met.add(fold);
      if (!folded.includes(fold.closest(".draft").dataset.draft)) continue;
      fold.open = false;
      fold.dataset.asked = "yes";
    }
  };
  const edit = () => {
    const form = document.querySelector(".draft-edit");
    if (form && !met.has(form)) {
      met.add(form);
      const card = form.closest(".draft"), text = form.querySelector("textarea");
      if (card.classList.contains("later")) stack(true);
      card.querySelector(".fold").open = true;
      card.querySelector(".fold").dataset.asked = "yes";
      text.focus();
      text.setSelectionRange(text.value.length, text.value.length);
      form.scrollIntoView({ block: "nearest" });
    }
    // Who is done with it is back at where they came from.
    if (!form && editing && document.activeElement === document.body)
      document.querySelector(`#${editing} [data-testid=draft-edit]`)?.focus();
    editing = form?.closest(".draft").id ?? null;
  };
  // What can be undone for a moment is in view for that moment.
  const offer = () => {
    for (const bar of all(".undone")) {
      if (met.has(bar)) continue;
      met.add(bar);
      bar.scrollIntoView({ block: "nearest" });
    }
  };
  const settled = () => {
    stack(root.classList.contains("drafts-open"));
    refold();
    edit();
    offer();
    watch();
  };
  // A link to one draft unfolds it.
  const arrive = () => {
    const card = /^#draft-\d+$/.test(location.hash) && document.querySelector(`${location.hash}.draft`);
    if (!card) return;
    const fold = card.querySelector(".fold");
    if (card.classList.contains("later")) stack(true);
    if (fold && little.matches) {
      for (const other of all(".fold")) other.open = other === fold;
      fold.dataset.asked = "yes";
    }
    card.scrollIntoView({ block: "nearest" });
    look();
  };
  addEventListener("hashchange", arrive);
  document.addEventListener("settled", settled);
  document.addEventListener("visibilitychange", look);
  stack(remembered().open);
  settled();
  arrive();
})();
