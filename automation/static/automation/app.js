/* Small comforts on top of pages that work without this file: menus that close, live parts, one send per press. */
"use strict";

(function () {
  const live = document.getElementById("live");

  function say(text) {
    if (live && text) {
      live.textContent = text;
    }
  }

  /* A menu closes with Escape, when another opens, and when focus or pointer leave it. */
  const menus = () => document.querySelectorAll("details[data-menu][open]");

  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") {
      return;
    }
    for (const menu of menus()) {
      const inside = menu.contains(document.activeElement);
      menu.open = false;
      if (inside) {
        menu.querySelector("summary").focus();
      }
    }
  });

  document.addEventListener("click", (event) => {
    for (const menu of menus()) {
      if (!menu.contains(event.target)) {
        menu.open = false;
      }
    }
  });

  document.addEventListener("focusin", (event) => {
    for (const menu of menus()) {
      if (!menu.contains(event.target)) {
        menu.open = false;
      }
    }
  });

  /* A form that is on its way isn't sent a second time. */
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.method !== "post") {
      return;
    }
    if (form.dataset.sent) {
      event.preventDefault();
      return;
    }
    form.dataset.sent = "yes";
    const button = event.submitter;
    if (button) {
      button.setAttribute("aria-busy", "true");
    }
    window.removeEventListener("beforeunload", warn);
  });

  window.addEventListener("pageshow", () => {
    for (const form of document.querySelectorAll("form[data-sent]")) {
      delete form.dataset.sent;
      for (const button of form.querySelectorAll("[aria-busy]")) {
        button.removeAttribute("aria-busy");
      }
    }
  });

  /* The summary of what is wrong gets the focus when a page comes back with it. */
  const summary = document.querySelector("[data-error-summary]");
  if (summary) {
    summary.focus();
  }

  /* A rule that was moved keeps the focus on its button, or on the other one at the end of the list. */
  const moved = /^#(up|down)-(\d+)$/.exec(window.location.hash);
  if (moved) {
    const buttons = ["up", "down"].map((way) => document.getElementById(`${way}-${moved[2]}`));
    const button = document.getElementById(window.location.hash.slice(1)) || buttons.find(Boolean);
    if (button) {
      button.focus();
    }
  }

  /* A link to a line of the definition selects that line. */
  const editor = document.querySelector("textarea[data-editor]");
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-line]");
    if (!link || !editor) {
      return;
    }
    event.preventDefault();
    const lines = editor.value.split("\n");
    const line = Math.min(Number(link.dataset.line), lines.length);
    const start = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
    editor.focus();
    editor.setSelectionRange(start, start + lines[line - 1].length);
    editor.scrollTop = (editor.scrollHeight / lines.length) * Math.max(line - 6, 0);
  });

  /* Text that was typed and not saved isn't left by accident. */
  function warn(event) {
    event.preventDefault();
  }
  if (editor) {
    const before = editor.value;
    editor.addEventListener("input", () => {
      if (editor.value === before && !editor.hasAttribute("data-unsaved")) {
        window.removeEventListener("beforeunload", warn);
      } else {
        window.addEventListener("beforeunload", warn);
      }
      keep({ sent: false });
    });
    editor.form.addEventListener("submit", () => keep({ sent: true }));
    offerBack();
  }

  /* A copy stays in this tab until the server has the text: a login that ran out or a crash loses nothing. */
  function keep(about) {
    const copy = { text: editor.value, revision: Number(editor.dataset.revision), ...about };
    try {
      sessionStorage.setItem(window.location.pathname, JSON.stringify(copy));
    } catch (full) {
      /* Without room for a copy the page works as it does without scripts. */
    }
  }

  function offerBack() {
    const copy = JSON.parse(sessionStorage.getItem(window.location.pathname) || "null");
    const saved = copy && copy.sent && Number(editor.dataset.revision) === copy.revision + 1;
    if (!copy || saved || copy.text === editor.value) {
      if (saved) {
        sessionStorage.removeItem(window.location.pathname);
      }
      return;
    }
    const offer = document.querySelector("[data-offer]");
    if (!offer) {
      return;
    }
    const [back, drop] = offer.querySelectorAll("button");
    const done = () => {
      offer.hidden = true;
      editor.focus();
    };
    back.addEventListener("click", () => {
      editor.value = copy.text;
      window.addEventListener("beforeunload", warn);
      done();
    });
    drop.addEventListener("click", () => {
      sessionStorage.removeItem(window.location.pathname);
      done();
    });
    offer.hidden = false;
  }

  /* Live parts: fetched again every so many seconds, never while somebody is working in them. */
  const POLL_LIMIT = 15000;
  let paused = false;

  function busy(part) {
    return part.contains(document.activeElement) || part.querySelector("details[open]") !== null;
  }

  async function refresh(part) {
    if (paused || document.hidden || busy(part)) {
      return;
    }
    const answer = await fetch(window.location.href, {
      credentials: "same-origin",
      signal: AbortSignal.timeout(POLL_LIMIT),
    });
    if (!answer.ok || answer.redirected) {
      return;
    }
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const next = page.getElementById(part.id);
    if (!next || busy(part)) {
      return;
    }
    if (next.dataset.say !== part.dataset.say) {
      say(next.dataset.say);
    }
    const changed = next.innerHTML !== part.innerHTML;
    part.dataset.say = next.dataset.say || "";
    if (changed) {
      part.replaceChildren(...next.childNodes);
    }
    const banner = document.querySelector(".banner");
    const nextBanner = page.querySelector(".banner");
    if (banner && nextBanner && !banner.contains(document.activeElement)) {
      banner.replaceWith(nextBanner);
    }
    if ("pollDone" in next.dataset) {
      part.dataset.pollDone = "";
    }
    stamp(part, page);
  }

  function stamp(part, page) {
    const name = `[data-poll-stamp="${part.id}"]`;
    const [place, next] = [document.querySelector(name), page.querySelector(name)];
    if (place && next) {
      place.replaceChildren(...next.childNodes);
    }
  }

  for (const part of document.querySelectorAll("[data-poll]")) {
    const every = Number(part.dataset.poll) * 1000;
    const controls = document.querySelector(`[data-poll-controls="${part.id}"]`);
    if ("pollDone" in part.dataset) {
      continue;
    }
    if (controls) {
      controls.hidden = false;
      const button = controls.querySelector("button");
      button.addEventListener("click", () => {
        paused = !paused;
        button.textContent = paused ? button.dataset.resume : button.dataset.pause;
      });
    }
    const timer = setInterval(() => {
      refresh(part).catch(() => {});
      if ("pollDone" in part.dataset) {
        clearInterval(timer);
        if (controls) {
          controls.hidden = true;
        }
      }
    }, every);
  }
})();
