// Keeps the page true and its forms quick. Without this file every form still works.
"use strict";
(() => {
  document.documentElement.classList.add("js");
  const el = (id) => document.getElementById(id);
  const app = document.querySelector(".app");

  // Makes `old` like `now` and leaves what is the same alone: focus, what is unfolded, what moves.
  const morph = (old, now) => {
    if (old.nodeType !== 1) {
      if (old.data !== now.data) old.data = now.data;
      return;
    }
    if (old.hasAttribute("data-keep")) return;
    for (const { name } of [...old.attributes]) {
      if (!now.hasAttribute(name) && !(name === "open" && old.localName === "details")) old.removeAttribute(name);
    }
    for (const { name, value } of now.attributes) {
      if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    }
    fill(old, now);
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

  const say = (sentence, kind = "trouble") => {
    el("toast").textContent = sentence;
    el("toast").dataset.kind = kind;
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
  const said = (answer) => {
    const buttons = [...answer.querySelectorAll("button")];
    for (const button of buttons) button.hidden = true;
    const text = answer.innerText;
    for (const button of buttons) button.hidden = false;
    return text;
  };

  if (!app) return;
  const main = el("main"), messages = el("messages"), input = el("chat-input"), composer = el("composer");
  const chat = app.dataset.chat;

  const atEnd = () => main.scrollHeight - main.scrollTop - main.clientHeight < 90;
  // A beginning is read from its top.
  const toEnd = () => { main.scrollTop = messages.children.length ? main.scrollHeight : 0; };
  let sticks = true;
  const mark = () => {
    sticks = atEnd();
    el("to-end").hidden = sticks;
  };
  main.addEventListener("scroll", mark, { passive: true });
  // A keyboard that comes up, a banner that appears: who was at the end stays there.
  new ResizeObserver(() => { if (sticks) toEnd(); }).observe(main);
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

  // What the server cannot know: what was unfolded, and so may be sent.
  const settle = () => {
    for (const box of document.querySelectorAll(".waits-words")) cycle(box);
    for (const long of document.querySelectorAll("details.long")) {
      if (long.open) long.dataset.seen = "yes";
      const tap = long.closest(".draft").querySelector("button.primary");
      if (tap) tap.disabled = !long.dataset.seen;
    }
  };
  document.addEventListener("toggle", settle, true);

  const patch = (patches) => {
    const stay = sticks, focused = document.activeElement;
    for (const { id, html, from, blocks } of patches) {
      if (id) {
        fill(el(id), parsed(html));
        continue;
      }
      while (messages.children.length > from + blocks.length) messages.lastElementChild.remove();
      blocks.forEach((block, n) => {
        const now = parsed(block).firstElementChild, old = messages.children[from + n];
        if (old) morph(old, now);
        else messages.append(now);
      });
    }
    settle();
    if (stay) toEnd();
    mark();
    if (focused && focused !== document.body && !focused.isConnected) main.focus();
  };

  let events;
  const follow = () => {
    const where = new URLSearchParams(location.search);
    if (chat) where.set("chat", chat);
    where.set("have", app.dataset.have);
    events = new EventSource(`/events?${where}`);
    events.addEventListener("open", () => { el("offline").textContent = ""; });
    events.addEventListener("patch", (event) => {
      app.dataset.live = "yes";
      patch(JSON.parse(event.data));
    });
    events.addEventListener("gone", () => location.reload());
    events.addEventListener("error", () => {
      app.dataset.live = "no";
      el("offline").textContent = "Reconnecting …";
      if (events.readyState === EventSource.CLOSED) setTimeout(follow, 3000);
    });
  };
  // A page that nobody sees gives its connection back: a browser has few for one address, and what Kai has to report
  // is notified only while nobody looks.
  let away;
  document.addEventListener("visibilitychange", () => {
    clearTimeout(away);
    if (document.hidden) away = setTimeout(() => events.close(), 10000);
    else if (events.readyState === EventSource.CLOSED) follow();
  });

  const send = async (form, button) => {
    const said = form === composer && !button?.hasAttribute("formaction");
    if (form.dataset.busy || (said && !input.value.trim())) return;
    const text = input.value, body = new URLSearchParams(new FormData(form, button));
    const path = button?.getAttribute("formaction") || form.getAttribute("action");
    form.dataset.busy = "yes";
    say("");
    try {
      const answer = await fetch(path, { method: "POST", body, headers: { "x-live": "1" } });
      if (answer.status === 401) return location.reload();
      const json = answer.headers.get("content-type")?.includes("json");
      const told = json ? await answer.json() : { error: (await answer.text()).slice(0, 300) };
      if (!answer.ok) return say(told.error);
      if (said && input.value === text) {
        input.value = "";
        grow();
      }
      if (said) toEnd();
      const elsewhere = path.endsWith("/delete") && path !== `/c/${chat}/delete`;
      if (told.to && told.to !== `/c/${chat}` && !elsewhere) location.assign(told.to);
    } catch {
      say("Kai does not answer. Is it still running?");
    } finally {
      delete form.dataset.busy;
    }
  };
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form !== composer && !form.hasAttribute("data-live")) return;
    event.preventDefault();
    send(form, event.submitter);
  });

  const grow = () => {
    input.style.height = "auto";
    input.style.height = `${Math.min(input.scrollHeight, 200)}px`;
  };
  input.addEventListener("input", grow);
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || matchMedia("(pointer: coarse)").matches) return;
    event.preventDefault();
    const button = composer.querySelector('[data-testid="chat-send"]');
    if (!button.disabled) composer.requestSubmit(button);
  });
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy], [data-idea]");
    if (!button) return;
    if (button.hasAttribute("data-idea")) {
      input.value = button.textContent;
      return composer.requestSubmit(composer.querySelector('[data-testid="chat-send"]'));
    }
    const code = button.nextElementSibling?.localName === "pre" && button.nextElementSibling;
    await copy(code ? code.innerText : said(button.closest(".exchange").querySelector(".answer")));
    say("Copied.", "fine");
    setTimeout(() => say(""), 1500);
  });

  settle();
  toEnd();
  mark();
  follow();
  if (!matchMedia("(pointer: coarse)").matches) input.focus();
})();
