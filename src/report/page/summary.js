(({ data, $, element }) => {
  for (const [name, value, detail, main, meaning] of data.figures) {
    const box = element("div", main ? "figure main" : "figure");
    box.title = meaning;
    box.append(element("span", "", name), element("b", "", value), element("small", "", detail));
    $("figures").append(box);
  }
  for (const [name, value] of data.settings) {
    const row = element("div");
    row.append(element("span", "", name), element("span", "", value));
    document.querySelector("#settings .tables").append(row);
  }
})(page);
