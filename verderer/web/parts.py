"""What every page is given."""

from __future__ import annotations

from dataclasses import dataclass

from litestar.di import NamedDependency
from litestar.params import SkipValidation

from verderer.objects.log_chunks import ChunkSource
from verderer.objects.store import ObjectStore
from verderer.usecases.context import Context
from verderer.usecases.submit_run import Submitter
from verderer.web.language import Catalogues
from verderer.web.static import Assets


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Made once by `web_handlers`."""

    ctx: Context
    submitter: Submitter
    objects: ObjectStore
    logs: ChunkSource
    assets: Assets
    catalogues: Catalogues
    version: str

    @property
    def secure(self) -> bool:
        """Browsers reach us over https, so cookies never travel without it."""
        return self.ctx.public_url.startswith("https:")


PartsArg = NamedDependency[SkipValidation[Parts]]
