// Texts of the page whose contrast to what is behind them is below WCAG 2.2, 1.4.3 (AA): 4.5, or 3 from 24 pixels on, or 18.66 in bold.
// A list of "ratio: text [element]"; its first line is how many texts were looked at.
(() => {
  const parse = c => {
    const m = c.match(/^rgba?\(([^)]*)\)/), s = c.match(/^color\(srgb ([^)]*)\)/);
    const v = (m ?? s)[1].split(/[\s,/]+/).map(Number);
    return [...v.slice(0, 3).map(x => s ? x : x / 255), v[3] ?? 1];
  };
  const over = (top, below) => top.slice(0, 3).map((x, i) => x * top[3] + below[i] * (1 - top[3])).concat(1);
  const luminance = c => {
    const [r, g, b] = c.map(x => x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (a, b) => {
    const [x, y] = [luminance(a), luminance(b)];
    return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
  };
  // behind is the colour that is seen behind an element, or null where it is a picture.
  const behind = element => {
    const layers = [];
    for (let e = element; e; e = e.parentElement) {
      const style = getComputedStyle(e);
      if (style.backgroundImage !== "none") return null;
      const c = parse(style.backgroundColor);
      if (c[3] > 0) layers.push(c);
      if (c[3] === 1) break;
    }
    return layers.reverse().reduce((below, top) => over(top, below), [1, 1, 1, 1]);
  };
  const faded = element => {
    let o = 1;
    for (let e = element; e; e = e.parentElement) o *= +getComputedStyle(e).opacity;
    return o;
  };
  let looked = 0;
  const bad = [];
  const check = (element, ink, ground, text) => {
    if (!ground) return;
    looked++;
    const style = getComputedStyle(element), size = parseFloat(style.fontSize);
    const least = size >= 24 || size >= 18.66 && +style.fontWeight >= 700 ? 3 : 4.5;
    const c = parse(ink);
    c[3] *= faded(element);
    const r = ratio(over(c, ground), ground);
    if (r < least) bad.push(`${r.toFixed(2)}: ${text.trim().slice(0, 40)} [${element.tagName.toLowerCase()}.${element.getAttribute("class") ?? ""} in ${element.parentElement.tagName.toLowerCase()}.${element.parentElement.getAttribute("class") ?? ""}]`);
  };
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let n = walk.nextNode(); n; n = walk.nextNode()) {
    const e = n.parentElement;
    if (!n.data.trim() || !e.checkVisibility({visibilityProperty: true, opacityProperty: true}) || e.closest("title, script, style, [aria-hidden=true]")) continue;
    if (!(e instanceof SVGElement)) { check(e, getComputedStyle(e).color, behind(e), n.data); continue; }
    e.scrollIntoView({block: "center"});
    const box = e.getBoundingClientRect();
    const rect = document.elementsFromPoint(box.x + box.width / 2, box.y + box.height / 2).find(x => x.tagName === "rect");
    check(e, getComputedStyle(e).fill, rect && parse(getComputedStyle(rect).fill)[3] === 1 ? parse(getComputedStyle(rect).fill) : behind(e.closest("svg").parentElement), n.data);
  }
  for (const e of document.querySelectorAll("input[placeholder]")) check(e, getComputedStyle(e, "::placeholder").color, behind(e), e.placeholder);
  return [String(looked), ...bad];
})()
