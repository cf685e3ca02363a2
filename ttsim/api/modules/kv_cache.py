"""ttnn.kv_cache: the names that ttsim has."""

from ttsim.api.kv_cache import fill_cache_for_user_, update_cache_for_token_
from ttsim.runtime.types.signatures import public

__all__ = ["fill_cache_for_user_", "update_cache_for_token_"]


__dir__ = public(globals())
