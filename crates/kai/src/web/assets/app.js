// Keeps the page true and its forms quick. Without this file every form still works.
"use strict";
(() => {
  document.documentElement.classList.add("js");
  const el = (id) => document.getElementById(id);
  const all = (selector) => document.querySelectorAll(selector);
  const app = document.querySelector(".app");
  if (!app) return;
  const main = el("main");
  // This file's texts.
  const words = el("words").dataset;
  // Where the page lies, if another Kai hands it on below a path of its own.
  const under = document.documentElement.dataset.under ?? "";
  // Fields with unsaved input.
  const typed = new WeakSet();
  const forget = (form) => { for (const field of form.elements) typed.delete(field); };

  // Makes `old` like `now` and leaves what is the same alone: focus, what is unfolded, what moves, what is being typed.
  const morph = (old, now) => {
    if (old.nodeType !== 1) {
      if (old.data !== now.data) old.data = now.data;
      return;
    }
    if (old.hasAttribute("data-keep")) return;
    // The same moment as before; its words are the age that `ages` wrote.
    if (old.localName === "time" && old.dateTime === now.dateTime) return;
    // What is unfolded, and by whom, is the person's.
    if (old.localName !== "details") {
      for (const { name } of [...old.attributes]) if (!now.hasAttribute(name)) old.removeAttribute(name);
      for (const { name, value } of now.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    }
    fill(old, now);
    if (old.matches("input, textarea, select") && !typed.has(old) && old !== document.activeElement) reset(old);
  };
  const alike = (a, b) => a.nodeName === b.nodeName && !a.id && !b.id;
  const fill = (old, now) => {
    let at = old.firstChild;
    for (const node of [...now.childNodes]) {
      const here = node.id ? [...old.children].find((e) => e.id === node.id) : at && alike(at, node) ? at : null;
      if (!here) {
        old.insertBefore(node, at);
        continue;
      }
      if (here === at) at = at.nextSibling;
      else old.insertBefore(here, at);
      morph(here, node);
    }
    while (at) {
      const next = at.nextSibling;
      at.remove();
      at = next;
    }
  };
  const parsed = (html) => {
    const template = document.createElement("template");
    template.innerHTML = html;
    return template.content;
  };
  // A field as the server last said.
  const reset = (field) => {
    typed.delete(field);
    if (field.localName === "select") field.selectedIndex = Math.max(0, [...field.options].findIndex((option) => option.defaultSelected));
    else if (field.value !== field.defaultValue) field.value = field.defaultValue;
  };

  // A sentence about a form: what was refused stays in it or in its card; what went well passes by.
  const say = (sentence, kind = "trouble", form = null, remedy = null) => {
    const card = form?.querySelector(".told") ?? form?.closest(".card")?.querySelector(":scope > .told");
    const place = kind === "trouble" && card ? card : el("toast");
    place.textContent = sentence;
    if (remedy) place.append(" ", Object.assign(document.createElement("a"), remedy));
    place.dataset.kind = kind;
    if (kind === "fine") setTimeout(() => { if (place.textContent === sentence) place.textContent = ""; }, 4000);
    else if (sentence && place === card) place.scrollIntoView({ block: "nearest" });
  };

  // What the server cannot know: what a slider or a field holds at this moment.
  const label = (range) => {
    const stop = range.dataset.stops.split("|")[range.value];
    range.setAttribute("aria-valuetext", stop);
    const shown = document.querySelector(`output[for="${range.id}"]`);
    if (shown) shown.textContent = stop;
  };
  const number = new Intl.NumberFormat(document.documentElement.lang);
  const count = (shown) => {
    const length = [...el(shown.htmlFor.value).value].length;
    shown.textContent = `${number.format(length)} / ${number.format(shown.dataset.longest)}`;
    shown.classList.toggle("over", length > shown.dataset.longest);
  };
  // How long ago a moment is, in the page's language; the moment itself is there for the pointer.
  const since = new Intl.RelativeTimeFormat(document.documentElement.lang, { numeric: "auto", style: "short" });
  const UNITS = [["minute", 60, 3600], ["hour", 3600, 86400], ["day", 86400, 604800]];
  const ages = () => all("time:not([data-fixed])").forEach((time) => {
    time.title ||= time.textContent;
    const seconds = (new Date(time.dateTime) - Date.now()) / 1000, size = Math.abs(seconds);
    const [unit, length] = UNITS.find(([, , end]) => size < end) ?? [];
    const age = unit ? since.format(Math.trunc(seconds / length), unit) : time.title;
    time.textContent = seconds <= 0 && size < 60 ? words.justNow : age;
  });
  setInterval(ages, 30000);
  const settle = () => {
    ages();
    all("input[data-stops]").forEach(label);
    all("output[data-longest]").forEach(count);
    fold();
    unfold();
    chat?.settle();
    document.dispatchEvent(new Event("settled"));
  };

  // A tap is meant for what was seen under the finger: what has just come or moved takes none for a moment. Keys do.
  const moved = new WeakMap();
  const places = () => new Map([...all("#banners .primary, #banners .tap")].map((tap) => [tap, JSON.stringify(tap.getBoundingClientRect())]));
  // What waits for a tap is not hidden below what was dealt with.
  const reveal = (before) => {
    const fresh = [...places().keys()].find((tap) => !before.has(tap));
    fresh?.closest(".card").scrollIntoView({ block: "nearest" });
  };
  const hold = (before) => places().forEach((place, tap) => {
    if (place !== before.get(tap)) {
      clearTimeout(moved.get(tap));
      moved.set(tap, setTimeout(() => { moved.delete(tap); delete tap.dataset.moved; }, 700));
    }
    tap.toggleAttribute("data-moved", moved.has(tap));
  });
  document.addEventListener("click", (event) => {
    if (!event.detail || !moved.has(event.target.closest("button"))) return;
    event.preventDefault();
    event.stopPropagation();
    say(words.tapMoved, "fine");
  }, true);

  // Where there is little room, the first draft is whole, if it fits with its buttons, and each other one is a line. A
  // tap on a line unfolds it and folds the others.
  const little = matchMedia("(max-width: 599px), (max-height: 429px)");
  const fits = (draft) => {
    const box = el("banners"), top = box.getBoundingClientRect().top - box.scrollTop;
    return draft.closest(".card").getBoundingClientRect().bottom - top <= box.clientHeight;
  };
  const fold = () => {
    const drafts = [...all(".fold")], asked = drafts.some((draft) => draft.dataset.asked);
    if (!little.matches) return;
    drafts.forEach((draft, n) => { if (!draft.dataset.asked) draft.open = !asked && n === 0; });
    if (!asked && drafts.length && !fits(drafts[0])) drafts[0].open = false;
  };
  document.addEventListener("click", (event) => {
    const line = event.target.closest(".fold > summary");
    if (!line || !little.matches) return;
    event.preventDefault();
    const before = places(), draft = line.parentElement, open = !draft.open;
    for (const other of all(".fold")) other.open = open && other === draft;
    draft.dataset.asked = "yes";
    draft.closest(".card").scrollIntoView({ block: "nearest" });
    hold(before);
  });
  // What was unfolded, and so may be sent.
  const unfold = () => {
    for (const long of all("details.long")) {
      if (long.open) long.dataset.seen = "yes";
      for (const tap of long.closest(".draft").querySelectorAll("button.tap")) tap.disabled = !long.dataset.seen;
    }
  };
  document.addEventListener("toggle", unfold, true);
  const refold = () => {
    const before = places();
    fold();
    hold(before);
  };
  addEventListener("resize", refold);
  little.addEventListener("change", () => {
    for (const draft of all(".fold")) {
      draft.open = true;
      delete draft.dataset.asked;
    }
    refold();
  });

  const patch = (patches) => {
    const focused = document.activeElement, stay = chat?.sticks(), before = places();
    for (const { id, html, from, blocks } of patches) {
      if (!id) chat.blocks(from, blocks);
      else if (el(id)) fill(el(id), parsed(html));
    }
    settle();
    chat?.rest(stay);
    reveal(before);
    hold(before);
    const lost = focused && focused !== document.body && !focused.isConnected;
    if (lost && document.activeElement === document.body) main.focus();
  };

  let events;
  const follow = () => {
    events?.close();
    const where = new URLSearchParams(location.search);
    if (app.dataset.page) where.set("page", app.dataset.page);
    if (app.dataset.inbox != null) where.set("inbox", app.dataset.inbox);
    if (app.dataset.chat) where.set("chat", app.dataset.chat);
    if (app.dataset.have) where.set("have", app.dataset.have);
    events = new EventSource(`${under}/events?${where}`);
    events.addEventListener("open", () => { el("offline").textContent = ""; });
    events.addEventListener("patch", (event) => {
      app.dataset.live = "yes";
      patch(JSON.parse(event.data));
    });
    events.addEventListener("gone", () => location.reload());
    const mine = events;
    events.addEventListener("error", async () => {
      if (mine !== events) return;
      app.dataset.live = "no";
      el("offline").textContent = words.reconnecting;
      if (mine.readyState !== EventSource.CLOSED) return;
      // If the session has ended, what is private does not stay in sight.
      const answer = await fetch(location.href, { method: "HEAD", signal: AbortSignal.timeout(5000) }).catch(() => null);
      if (answer?.status === 401) return location.reload();
      setTimeout(() => { if (mine === events) follow(); }, 3000);
    });
    doze();
  };
  // What else the address asks for stays when a draft is edited, and when it is done.
  const beside = (address) => {
    const there = new URL(address, location), now = new URLSearchParams(location.search);
    for (const [name, value] of now) if (name !== "edit" && name !== "whole") there.searchParams.set(name, value);
    return there;
  };
  const unasked = () => {
    history.replaceState(null, "", beside(location.pathname));
    follow();
  };
  // A page that nobody sees gives its connection back: a browser has few for one address, and what Kai has to report
  // is notified only while nobody looks.
  let away;
  const doze = () => {
    clearTimeout(away);
    if (document.hidden) away = setTimeout(() => events.close(), 10000);
  };
  document.addEventListener("visibilitychange", () => {
    doze();
    if (!document.hidden && events.readyState === EventSource.CLOSED) follow();
  });
  // Nor does one that was left and is only kept for the way back.
  addEventListener("pagehide", () => events.close());
  addEventListener("pageshow", (event) => { if (event.persisted) follow(); });

  // What sends itself when it is changed.
  const SELF_SENDING = "[data-stops], select:not([data-stays])";
  const send = async (form, button) => {
    if (form.dataset.busy) {
      form.dataset.again = "yes";
      return;
    }
    const body = new URLSearchParams(new FormData(form, button));
    const path = button?.getAttribute("formaction") || form.getAttribute("action");
    const sent = [...form.elements].filter((field) => field.name && field.type !== "hidden" && field.type !== "submit");
    const values = sent.map((field) => field.value);
    // From here on it is the server's again, unless it is refused.
    sent.forEach((field) => typed.delete(field));
    const refused = (sentence, remedy) => {
      sent.forEach((field, n) => {
        // What was typed stays, to be mended; a slider goes back to what is so.
        if (field.matches(SELF_SENDING)) return reset(field);
        field.value = values[n];
        typed.add(field);
      });
      settle();
      say(sentence, "trouble", form, remedy);
    };
    form.dataset.busy = "yes";
    say("", "trouble", form);
    try {
      const answer = await fetch(path, { method: "POST", body, headers: { "x-live": "1" } });
      if (answer.status === 401) return location.reload();
      const json = answer.headers.get("content-type")?.includes("json");
      const told = json ? await answer.json() : { error: (await answer.text()).slice(0, 300) };
      if (!answer.ok) return refused(told.error, told.remedy);
      if (told.said) say(told.said, "fine", form);
      if (form.hasAttribute("data-closes")) unasked();
      form.closest("#chat-menu")?.hidePopover();
      chat?.sent(form, button, body);
      document.dispatchEvent(new CustomEvent("sent", { detail: { form, button, told, body } }));
      const here = location.pathname, elsewhere = path.endsWith("/delete") && path !== `${here}/delete`;
      if (!told.to || told.to === here || elsewhere) return;
      if (told.to !== `${under}/c/${app.dataset.chat}`) return location.assign(told.to);
      // `/` shows the newest chat. It gets that chat's address, and keeps what is typed, attached and edited.
      const there = new URL(location);
      there.pathname = told.to;
      history.replaceState(null, "", there);
    } catch {
      refused(words.noAnswer);
    } finally {
      delete form.dataset.busy;
      if (form.dataset.again) {
        delete form.dataset.again;
        if (form.querySelector("input[data-stops]")) send(form);
      }
    }
  };
  document.addEventListener("submit", (event) => {
    const form = event.target;
    // Such a form leads to another page or to a file; then nothing of it, such as a passphrase, is kept here.
    if (!form.hasAttribute("data-live")) return forget(form);
    event.preventDefault();
    if (!chat || chat.may(form, event.submitter)) send(form, event.submitter);
  });

  document.addEventListener("reset", ({ target }) => forget(target));

  // Sliders and choices send themselves, a moment after the last move.
  const soon = new WeakMap();
  document.addEventListener("input", ({ target }) => {
    const form = target.closest("form");
    if (form) typed.add(target);
    if (form?.hasAttribute("data-live")) settle();
  });
  document.addEventListener("change", ({ target }) => {
    const { form } = target;
    if (!target.matches(SELF_SENDING) || !form?.hasAttribute("data-live")) return;
    clearTimeout(soon.get(form));
    soon.set(form, setTimeout(() => send(form), 250));
  });
  // A link that unfolds a part of this page changes what is followed, and nothing that is typed.
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-show]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    history.pushState(null, "", link.hasAttribute("data-beside") ? beside(link.href) : link.href);
    follow();
  });
  addEventListener("popstate", follow);

  // The chat: what is said sticks to its end, and a field takes what is said next.
  const talk = () => {
    const messages = el("messages"), input = el("chat-input"), composer = el("composer");
    const atEnd = () => main.scrollHeight - main.scrollTop - main.clientHeight < 90;
    // A beginning is read from its top.
    const toEnd = () => { main.scrollTop = messages.children.length ? main.scrollHeight : 0; };
    // How far below the top of what can be seen the newest answer begins, if there is one yet.
    const begins = () => {
      const answer = el("turn").querySelector(".answer") ?? messages.lastElementChild?.querySelector(".answer");
      return answer && answer.getBoundingClientRect().top - main.getBoundingClientRect().top;
    };
    let sticks = true, reads = true;
    const mark = () => {
      const at = begins();
      sticks = atEnd();
      reads = at == null || (at > -8 && at < main.clientHeight);
      el("to-end").hidden = sticks;
      if (at != null && reads) noticed();
    };
    // What is being said is followed to its end. What is said is read from its beginning by who has not left that.
    const rest = () => {
      const at = begins();
      if (at == null || !reads || document.querySelector(".waiting")) toEnd();
      else main.scrollTop += at - 16;
    };
    // A report that is in sight needs no banner any more. That is said once, whatever comes of it.
    const told = new WeakSet();
    const noticed = () => {
      const form = document.querySelector("form[data-here]");
      if (!form || document.hidden || told.has(form)) return;
      told.add(form);
      send(form);
    };
    document.addEventListener("visibilitychange", mark);
    main.addEventListener("scroll", mark, { passive: true });
    // A keyboard that comes up, a banner that appears: who was at the end stays there.
    new ResizeObserver(() => {
      if (sticks) rest();
      mark();
    }).observe(main);
    el("to-end").addEventListener("click", toEnd);

    // The seed's waiting chip: three words, one every 3 s; the style eases width and opacity.
    const cycle = (box) => {
      if (box.dataset.turns) return;
      box.dataset.turns = "yes";
      let n = 0;
      const show = () => {
        [...box.children].forEach((word, i) => word.classList.toggle("on", i === n));
        box.style.width = `${box.children[n].offsetWidth}px`;
      };
      show();
      const timer = setInterval(() => {
        if (!box.isConnected) return clearInterval(timer);
        n = (n + 1) % box.children.length;
        show();
      }, 3000);
    };
    const copy = async (text) => {
      try {
        return await navigator.clipboard.writeText(text);
      } catch {
        // Outside of loopback a plain page has no clipboard; in the old way below it has.
      }
      const area = document.createElement("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    };
    // An answer without the buttons in it.
    const answered = (answer) => {
      const buttons = [...answer.querySelectorAll("button")];
      for (const button of buttons) button.hidden = true;
      const text = answer.innerText;
      for (const button of buttons) button.hidden = false;
      return text;
    };
    const grow = () => {
      input.style.height = "auto";
      input.style.height = `${Math.min(input.scrollHeight, 200)}px`;
    };
    input.addEventListener("input", grow);
    input.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing || matchMedia("(pointer: coarse)").matches) return;
      event.preventDefault();
      composer.requestSubmit(el("send"));
    });
    document.addEventListener("click", async (event) => {
      const button = event.target.closest("[data-copy], [data-idea]");
      if (!button) return;
      if (button.hasAttribute("data-idea")) {
        input.value = button.textContent;
        return composer.requestSubmit(el("send"));
      }
      const code = button.nextElementSibling?.localName === "pre" && button.nextElementSibling;
      await copy(code ? code.innerText : answered(button.closest(".exchange").querySelector(".answer")));
      say(words.copied, "fine");
    });
    if (!matchMedia("(pointer: coarse)").matches) input.focus();

    const isSaid = (form, button) => form === composer && !button?.hasAttribute("formaction");
    return {
      settle: () => all(".waits-words").forEach(cycle),
      sticks: () => sticks,
      rest: (stay) => {
        if (stay) rest();
        mark();
      },
      blocks: (from, blocks) => {
        while (messages.children.length > from + blocks.length) messages.lastElementChild.remove();
        blocks.forEach((block, n) => {
          const now = parsed(block).firstElementChild, old = messages.children[from + n];
          if (old) morph(old, now);
          else messages.append(now);
        });
      },
      // Nothing is said twice, nor is nothing.
      may: (form, button) => !form.dataset.busy && (!isSaid(form, button) || input.value.trim() || el("files").value),
      sent: (form, button, body) => {
        if (!isSaid(form, button)) return;
        if (input.value === body.get("text")) {
          input.value = "";
          grow();
        }
        toEnd();
      },
    };
  };
  const chat = el("messages") && talk();

  settle();
  // Of pages in one row, the one that is open is in sight.
  const pages = document.querySelector(".pages"), here = pages?.querySelector("[aria-current]");
  if (here) new ResizeObserver(() => {
    pages.scrollLeft = here.offsetLeft - (pages.clientWidth - here.offsetWidth) / 2;
  }).observe(pages);
  chat?.rest(true);
  reveal(new Map());
  window.kai = { under, little, places, hold, say, follow };
  follow();
  // Shows that Kai is not running when it is not; see sw.js.
  if (!under) navigator.serviceWorker?.register(`/sw.js?lang=${document.documentElement.lang}`).catch(() => {});
})();
