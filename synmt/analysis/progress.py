"""Progress of long analyses; scoring reports its progress in the same way."""

from synmt.evaluation.progress import Advance, Display, progress, show_progress_with

__all__ = ["Advance", "Display", "progress", "show_progress_with"]
