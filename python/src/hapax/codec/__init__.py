"""Python values as JSON, and back, by their annotations.

`codec_of(annotation)` builds a `Codec` once, at decoration. Decoding ignores unknown members of objects; anything else
that does not fit raises `Mismatch` with the JSON Pointer of the place.
"""

from hapax.codec.base import Codec, Mismatch, dump_json, load_json
from hapax.codec.build import codec_of

__all__ = ["Codec", "Mismatch", "codec_of", "dump_json", "load_json"]
