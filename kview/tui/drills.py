"""Shows drills."""


class DrillShow: ...
