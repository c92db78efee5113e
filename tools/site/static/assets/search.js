// search returns the sections that have all words of a query, the best first. A word counts where another one begins with it.
function search(index, query) {
  var words = query.toLowerCase().split(/\s+/).filter(function (word) { return word !== ""; });
  if (words.length === 0) {
    return [];
  }
  var found = [];
  index.forEach(function (section, place) {
    var score = 0;
    for (var i = 0; i < words.length; i++) {
      var one = 12 * count(section.heading, words[i], 1) + 20 * count(section.title, words[i], 1) + count(section.text, words[i], 5);
      if (one === 0) {
        return;
      }
      score += one;
    }
    if (section.page.indexOf("/reference/") >= 0 || section.page.indexOf("CHANGELOG") >= 0) {
      score /= 4; // every field is there, and every change: guides first
    }
    found.push({ section: section, score: score, place: place });
  });
  found.sort(function (a, b) { return b.score - a.score || a.place - b.place; });
  return found.map(function (f) { return f.section; });
}

// count returns how often a word of a text begins with another one, up to a limit.
function count(text, word, limit) {
  var lower = text.toLowerCase();
  var n = 0;
  for (var at = lower.indexOf(word); at >= 0 && n < limit; at = lower.indexOf(word, at + 1)) {
    if (at === 0 || !/[a-z0-9]/.test(lower[at - 1])) {
      n++;
    }
  }
  return n;
}

// excerpt returns the part of a text around the first of the words of a query.
function excerpt(text, query) {
  var word = query.toLowerCase().split(/\s+/).filter(function (w) { return w !== ""; })[0] || "";
  var at = Math.max(text.toLowerCase().indexOf(word) - 50, 0);
  var part = text.substring(at, at + 160);
  if (at > 0) {
    part = "… " + part.replace(/^\S*\s/, "");
  }
  return at + 160 < text.length ? part.replace(/\s\S*$/, " …") : part;
}
