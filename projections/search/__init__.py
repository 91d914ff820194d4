"""Full text over the rows of all sessions.

    query = Query(words=words_of(["disk full"]))
    for hit in search(log, query): print(hit.session, hit.row.text)

The index is made and kept up by whoever searches, beside the log's own tables and outside the path of
an append; what is wrong with it stops neither an append nor a search.
"""

from onrecord.projections.search.hits import Hit, Snippet, said, snippet
from onrecord.projections.search.query import Query, words_of
from onrecord.projections.search.search import rebuild, search

__all__ = ["Hit", "Query", "Snippet", "rebuild", "said", "search", "snippet", "words_of"]
