"""Which sentences do two systems translate most differently?"""
