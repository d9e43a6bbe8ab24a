"""Reports for people and for programs: text and plots, a page, JSON, CSV and Parquet."""
