"""synmt: neural machine translation whose attention reads dependency trees."""

__version__ = "0.1.0"
