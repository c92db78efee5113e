// The search of the site, its menu on narrow screens, and the choice between light and dark.
(function () {
  var base = document.body.getAttribute("data-base");
  var input = document.getElementById("query");
  var results = document.getElementById("results");
  var loading = false;

  // The index is large: it is loaded when somebody begins to search.
  function load() {
    if (loading) {
      return;
    }
    loading = true;
    var script = document.createElement("script");
    script.src = base + "assets/index.js";
    script.onload = show;
    document.body.appendChild(script);
  }

  function show() {
    results.textContent = "";
    if (typeof searchIndex === "undefined" || input.value.trim() === "") {
      results.hidden = true;
      return;
    }
    search(searchIndex, input.value).slice(0, 20).forEach(function (section) {
      var link = document.createElement("a");
      link.href = base + section.page + (section.anchor ? "#" + section.anchor : "");
      link.textContent = section.title + (section.heading ? " › " + section.heading : "");
      var text = document.createElement("p");
      text.textContent = excerpt(section.text, input.value);
      var item = document.createElement("li");
      item.appendChild(link);
      item.appendChild(text);
      results.appendChild(item);
    });
    if (!results.firstChild) {
      var none = document.createElement("li");
      none.textContent = "Nothing has these words.";
      results.appendChild(none);
    }
    results.hidden = false;
  }

  input.addEventListener("focus", load);
  input.addEventListener("input", function () { load(); show(); });
  input.addEventListener("keydown", function (event) {
    if (event.key === "Enter" && results.querySelector("a")) {
      location.href = results.querySelector("a").href;
    }
  });
  document.addEventListener("keydown", function (event) {
    if (event.key === "/" && document.activeElement !== input) {
      event.preventDefault();
      input.focus();
    } else if (event.key === "Escape") {
      results.hidden = true;
    }
  });
  document.addEventListener("click", function (event) {
    if (!event.target.closest(".search")) {
      results.hidden = true;
    }
  });
  // A link to a search, as index.html?q=partition.
  var asked = new URLSearchParams(location.search).get("q");
  if (asked) {
    input.value = asked;
    load();
  }

  document.getElementById("menu").addEventListener("click", function () {
    document.getElementById("nav").classList.toggle("open");
  });
  // Some browsers keep no storage for files of a folder.
  function stored(value) {
    try {
      if (value) {
        localStorage.setItem("theme", value);
      }
      return localStorage.getItem("theme");
    } catch (error) {
      return null;
    }
  }
  function paint(theme) {
    if (theme) {
      document.documentElement.setAttribute("data-theme", theme);
    }
  }
  paint(new URLSearchParams(location.search).get("theme") || stored());
  document.getElementById("theme").addEventListener("click", function () {
    var now = document.documentElement.getAttribute("data-theme") || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
    var next = now === "dark" ? "light" : "dark";
    stored(next);
    paint(next);
  });
  var here = document.querySelector('nav a[aria-current="page"]');
  if (here) {
    here.scrollIntoView({ block: "nearest" });
  }
})();
