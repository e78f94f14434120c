for (const table of document.querySelectorAll("table.sortable")) {
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, column) => heading.firstChild.addEventListener("click", () => {
    const down = heading.getAttribute("aria-sort") === "ascending";
    headings.forEach(other => other.removeAttribute("aria-sort"));
    heading.setAttribute("aria-sort", down ? "descending" : "ascending");
    const key = row => {
      const cell = row.cells[column];
      return "sort" in cell.dataset ? parseFloat(cell.dataset.sort) : cell.textContent;
    };
    const compare = (a, b) => typeof a === "number" ? a - b : a.localeCompare(b);
    const body = table.tBodies[0];
    const rows = [...body.rows].sort((a, b) => compare(key(a), key(b)) * (down ? -1 : 1));
    body.append(...rows);
  }));
}
