// What a person with a screen reader, a keyboard or weak eyes needs; returns what is wrong.
const wrong = [];
const seen = (e) => e.checkVisibility({ checkOpacity: false, checkVisibilityCSS: true });
const told = (e) => `${e.localName}${e.id ? "#" + e.id : ""}.${e.className?.baseVal ?? e.className} "${(e.innerText || "").slice(0, 30)}"`;

// Names: everything that can be used has one.
for (const e of document.querySelectorAll("a, button, input:not([type=hidden]), textarea, summary")) {
  if (!seen(e)) continue;
  const label = e.id && document.querySelector(`label[for="${e.id}"]`);
  const name = e.getAttribute("aria-label") || label?.textContent || e.textContent;
  if (!name.trim()) wrong.push(`no name: ${told(e)}`);
}
// Structure: one main, one h1, no id twice, a language, a title.
for (const one of ["main", "h1"]) {
  const count = [...document.querySelectorAll(one)].filter(seen).length;
  if (count !== 1) wrong.push(`${count} ${one}`);
}
const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
for (const id of new Set(ids)) if (ids.filter((i) => i === id).length > 1) wrong.push(`twice: #${id}`);
if (!document.documentElement.lang || !document.title) wrong.push("no language or title");

// Contrast: 4.5, or 3 for large text, against what really lies behind.
const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
const rgba = (colour) => {
  canvas.clearRect(0, 0, 1, 1);
  canvas.fillStyle = colour;
  canvas.fillRect(0, 0, 1, 1);
  const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
  return [r, g, b, a / 255];
};
const over = ([r, g, b, a], below) => [r, g, b].map((c, i) => c * a + below[i] * (1 - a));
const behind = (e) => {
  const layers = [];
  for (let at = e; at; at = at.parentElement) layers.push(rgba(getComputedStyle(at).backgroundColor));
  return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255]);
};
const light = (rgb) => {
  const [r, g, b] = rgb.map((c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
for (const e of document.querySelectorAll("body *")) {
  const text = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
  if (!text || !seen(e) || e.closest("[disabled], [aria-disabled=true], .seen-not, .waits-words, .skip, noscript, script")) continue;
  const style = getComputedStyle(e), back = behind(e);
  const a = light(over(rgba(style.color), back)), b = light(back);
  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && style.fontWeight >= 700);
  if (ratio < (large ? 3 : 4.5)) wrong.push(`contrast ${ratio.toFixed(2)}: ${told(e)}`);
}
// A list to choose from shows what is chosen.
for (const e of document.querySelectorAll("select")) if (e.options.length && e.selectedIndex < 0) wrong.push(`nothing is chosen: ${told(e)}`);
// Nothing sticks out to the side.
const box = document.getElementById("banners");
if (box && box.scrollWidth > box.clientWidth) wrong.push(`what waits is ${box.scrollWidth} px wide`);
if (document.documentElement.scrollWidth > innerWidth) wrong.push(`${document.documentElement.scrollWidth} px wide`);
return wrong;
