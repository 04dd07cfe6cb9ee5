package sqlsource

import "time"

// SetZone gives a source a zone that has no name.
func SetZone(s *Source, zone *time.Location) { s.zone = zone }
