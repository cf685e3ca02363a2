for (const picture of document.querySelectorAll(".picture")) {
  const parts = [...picture.querySelectorAll("svg *")].filter(
    (one) => one.firstElementChild && one.firstElementChild.tagName === "title");
  if (!parts.length) continue;
  const told = document.createElement("output");
  let at = -1;
  const hint = "Point at a part of the picture, touch it, or go there with the arrow keys.";
  const tell = (part) => {
    for (const one of picture.querySelectorAll(".told")) one.classList.remove("told");
    if (part) part.classList.add("told");
    told.className = part ? "" : "hint";
    told.textContent = part ? part.firstElementChild.textContent : hint;
  };
  const find = (target) => parts.find((one) => one === target || one.contains(target));
  const look = (event) => {
    const part = find(event.target);
    if (part) { at = parts.indexOf(part); tell(part); }
  };
  picture.addEventListener("mouseover", look);
  picture.addEventListener("click", look);
  picture.addEventListener("keydown", (event) => {
    const ends = { Home: 0, End: parts.length - 1 };
    const ways = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
    if (event.key in ends) at = ends[event.key];
    else if (event.key in ways) at = Math.min(parts.length - 1, Math.max(0, at + ways[event.key]));
    else return;
    event.preventDefault();
    tell(parts[at]);
  });
  tell();
  picture.tabIndex = 0;
  picture.append(told);
}
