"""What inference code uses: ``load`` a tuned kernel, call it on its arrays. Imports neither rules nor search for a recorded kernel."""

from .loading import FALLBACKS, load, problem_from
from .module import TunedModule

__all__ = ["FALLBACKS", "TunedModule", "load", "problem_from"]
