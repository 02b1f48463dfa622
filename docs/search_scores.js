// Sphinx's scores; but what a word gives in records of decisions comes after what it gives in pages for readers.
var Scorer = {
  score: ([docname, title, anchor, descr, score, filename, kind]) =>
    docname.startsWith("decisions/") ? score - 12 : score,
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
