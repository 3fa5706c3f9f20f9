(({ data, $, count, element }) => {
  for (const which of ["came", "went"]) {
    const rows = data.reasons[which];
    const most = Math.max(1, ...rows.map((row) => row[1]));
    for (const [words, times] of rows) {
      const line = element("div", "bar");
      const track = element("span", "track"), fill = element("i", "");
      fill.style.width = `${times / most * 100}%`;
      track.append(fill);
      const label = element("span", "label", words);
      label.title = words;
      line.append(label, track, element("span", "value", count(times)));
      $(`reasons-${which}`).append(line);
    }
  }
})(page);
