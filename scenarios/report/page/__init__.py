"""The report of a step, of a plan or of a table as one HTML file that needs no network.

step_page      what the page of one or two timelines shows: a document, and columns as arrays
*_record       the parts of such a document: devices, memory, links, cluster, provenance
comparison     two runs side by side, aligned by the names of nodes
table_page     a table with a chart of one column over another
html           document and arrays as a page: packed, encoded, with the scripts of `built/`
"""

from __future__ import annotations
