// Shows a page that says so when Kai is not running. It keeps that page and its style, and nothing that is private.
const KEPT = 'kai', keeps = [/* KEEPS */];

addEventListener('install', event => {
  skipWaiting();
  event.waitUntil(caches.delete(KEPT).then(() => caches.open(KEPT)).then(kept => kept.addAll(keeps)));
});

addEventListener('activate', event => event.waitUntil(clients.claim()));

addEventListener('fetch', event => {
  const { request } = event;
  if (request.mode === 'navigate') event.respondWith(fetch(request).catch(() => caches.match(keeps[0])));
  else if (keeps.includes(new URL(request.url).pathname)) event.respondWith(fetch(request).catch(() => caches.match(request)));
});
