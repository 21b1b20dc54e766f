"""What a page shows, panel by panel, of what its document says."""

from __future__ import annotations

from ..page_data import Document
from .blocks import PageBlock, lead, section
from .cluster_panel import cluster_panel
from .comparison_panel import comparison_panel
from .headline_panel import headline_panel
from .origin_panel import origin_panel
from .run_panels import links_panel, memory_panel, path_panel
from .table_panels import plans_panel, table_panel

_OPS = "Time of everything that occupied a device or a link, added up over all: it may be more than the step takes."


def panels(document: Document) -> list[PageBlock]:
    """The panels of a page in their order; one that the document has nothing for is left out."""
    runs, plans, table, compared = (document[key] for key in ("runs", "plans", "table", "comparison"))
    return [
        *headline_panel(document),
        *([plans_panel(plans, runs)] if plans else []),
        *([table_panel(table)] if table else []),
        *([comparison_panel(compared)] if compared else []),
        *([section("timeline", "Timeline", ["timeline", {}])] if any(run["events"] for run in runs) else []),
        *path_panel(runs),
        *memory_panel(runs),
        *links_panel(runs),
        *([section("ops", "Ops", lead(_OPS), ["ops", {}])] if runs else []),
        *cluster_panel(runs),
        *origin_panel(runs),
    ]
