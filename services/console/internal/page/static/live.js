// Keeps the region of a page as the server sends it, without a reload. A page that is not
// looked at has no connection.
"use strict";
(() => {
  const region = document.getElementById("live");
  const link = document.getElementById("link");
  if (!region || !region.dataset.live) return;
  let source = null;

  const say = (text) => { if (link && link.textContent !== text) link.textContent = text; };

  // What has the focus keeps it: by its id, or as the link to the same address.
  const swap = (html) => {
    const focused = region.contains(document.activeElement) ? document.activeElement : null;
    const id = focused && focused.id;
    const href = focused && focused.getAttribute("href");
    region.innerHTML = html;
    let again = id ? document.getElementById(id) : null;
    if (!again && href) again = [...region.querySelectorAll("a")].find((a) => a.getAttribute("href") === href);
    if (again) again.focus({ preventScroll: true });
  };

  const close = () => { if (source) source.close(); source = null; };
  const open = () => {
    if (source || document.hidden) return;
    source = new EventSource(region.dataset.live);
    source.onopen = () => say("live");
    source.onerror = () => say(source && source.readyState === EventSource.CLOSED ? "not live: reload the page" : "not live: trying again");
    source.addEventListener("region", (event) => { say("live"); swap(event.data); });
    source.addEventListener("stale", (event) => say("not live: " + event.data));
    source.addEventListener("gone", (event) => { close(); say("not live: " + event.data); });
  };
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  window.addEventListener("pagehide", close);
  window.addEventListener("pageshow", open);
  open();
})();
