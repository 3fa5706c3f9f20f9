(({ data, $, element }) => {
  for (const [name, value, detail, main] of data.figures) {
    const box = element("div", main ? "figure main" : "figure");
    box.append(element("span", "", name), element("b", "", value), element("small", "", detail));
    $("figures").append(box);
  }
  for (const [name, value] of data.settings) {
    const row = element("div");
    row.append(element("span", "", name), element("span", "", value));
    document.querySelector("#settings .tables").append(row);
  }
})(page);
