"""Drawings of pages, as SVG whose geometry is attributes, which no policy of styles forbids. Pure."""
