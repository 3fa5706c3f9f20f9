(({ data, $, element }) => {
  $("robustness-of").textContent = `${data.robustness.attack}: what is left of the accuracy, with 95% intervals`;
  for (const [name, value, interval, broken] of data.robustness.rows) {
    const box = element("div", "figure");
    box.title = broken;
    box.append(element("span", "", name), element("b", "", value), element("small", "", interval));
    $("robustness").append(box);
  }
})(page);
