"""What a lesson, a drill or the tour shows on the dashboard, and its keys."""
